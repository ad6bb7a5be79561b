"""git commands."""

from tests.engine.shell.tables.lines import split

READ_ONLY = split(r"""
git
git --version
git status
git status -sb
git status --porcelain=v2 --branch
git -C sub status
git --no-pager log
git -P log -1
git -p log
git --no-optional-locks status
git -c color.ui=always diff
git -c core.pager=cat log
git -c core.pager= log
git -c pager.log=false log
git -c advice.detachedHead=false status
git log
git log --oneline -5
git log --oneline --graph --all --decorate
git log -p -2 -- src/main.py
git log --since='2 weeks ago' --author=me
git log -n 5 --format='%h %s'
git log main..HEAD
git log -S 'foo' -- src
git log --stat --follow file
git log --output-indicator-new=x
git show
git show HEAD
git show HEAD~2:src/main.py
git show --stat abc123
git diff
git diff HEAD
git diff --stat
git diff --cached
git diff --name-only main...HEAD
git diff --no-ext-diff
git diff -U10 -- a b
git diff -M --stat
git diff --no-index a b
git diff --word-diff=color
git shortlog -sn
git ls-files
git ls-files -o --exclude-standard
git ls-files '*.py'
git ls-tree -r HEAD
git rev-parse HEAD
git rev-parse --show-toplevel
git rev-parse --abbrev-ref HEAD
git rev-list --count HEAD
git blame src/main.py
git blame -L 10,20 src/main.py
git annotate file
git grep foo
git grep -n 'def main' -- '*.py'
git describe --tags
git name-rev HEAD
git merge-base main HEAD
git cat-file -p HEAD
git cat-file --batch-check
git diff-tree --name-only -r HEAD
git diff-index HEAD
git diff-files
git show-ref
git for-each-ref --sort=-committerdate refs/heads
git cherry -v main
git count-objects -v
git check-ignore -v file
git check-attr -a file
git fsck
git verify-pack -v pack.idx
git var GIT_EDITOR
git whatchanged -1
git range-diff a b c
git branch
git branch -a
git branch -r
git branch -vv
git branch --list
git branch --list 'feature/*'
git branch --show-current
git branch --contains abc123
git branch --merged main
git branch --no-merged
git branch -a --sort=-committerdate
git branch --format='%(refname)'
git tag
git tag -l
git tag -l 'v1.*'
git tag --list
git tag -n
git tag -n5
git tag --contains HEAD
git tag --sort=-creatordate
git remote
git remote -v
git remote get-url origin
git config --list
git config -l
git config --get user.name
git config user.email
git config --global user.name
git config --global --list
git config --get-regexp '^alias'
git reflog
git reflog show
git reflog -5
git reflog HEAD
git stash list
git stash show
git stash show -p
git symbolic-ref HEAD
git symbolic-ref --short HEAD
git worktree list
git notes list
git submodule status
git sparse-checkout list
git clean -n
git clean -nd
git clean --dry-run -x
git reset --help
git log | head
GIT_PAGER=cat git log
GIT_OPTIONAL_LOCKS=0 git status
git status && git diff
git log --format=%H | while read -r c; do echo "$c"; done
""")

UNKNOWN = split(r"""
git -c core.pager=./evil log
git -c pager.log=./evil log
git -c alias.st='!rm x' st
git -c alias.log=status log
git -c core.fsmonitor=./evil status
git -c core.sshCommand=./evil status
git -c diff.external=./evil diff
git -c "$setting" status
git -c core.hooksPath=h status
git --config-env=core.pager=X log
git --exec-path=/tmp log
git --exec-path /tmp log
git $flags status
git $command
git "$command" x
git diff --ext-diff
git diff --ext
git log -p --textconv
git show --ext-diff HEAD
git grep -O foo
git grep -Ovi foo
git grep -nO foo
git grep --open-files-in-pager=./evil foo
git grep --open foo
git cat-file --filters HEAD:x
git cat-file --textconv HEAD:x
git log --show-signature
git fsck --lost-found
git log $x
git log --format=%H | while read -r c; do git show --stat $c | head -1; done
git diff *.py
git log "$rev"
git branch new
git branch -v new
git branch -l new
git branch -d old
git branch -D old
git branch -m a b
git branch -f main HEAD
git branch --set-upstream-to=origin/main
git branch --edit-description
git branch $x
git tag v1
git tag -a v1 -m x
git tag -d v1
git tag -n v1
git tag -v v1
git remote add o url
git remote remove o
git remote show origin
git remote update
git remote $x
git config user.name me
git config --global user.name me
git config --unset user.name
git config -e
git config --edit
git config --add a.b c
git config set a.b c
git reflog expire --all
git reflog delete HEAD@{1}
git reflog $x
git symbolic-ref HEAD refs/heads/x
git symbolic-ref -d HEAD
git worktree add ../x
git worktree prune
git notes add -m x
git submodule update --init
git submodule foreach rm x
git add .
git add -A
git commit -m x
git commit -am "fix: a/b"
git push
git push origin main --force
git fetch
git fetch --all --prune
git clone https://example.org/r.git
git init
git apply p.diff
git am p
git cherry-pick abc
git revert abc
git bisect start
git bisect run ./t
git gc
git prune
git update-index --refresh
git update-ref refs/heads/x HEAD
git read-tree HEAD
git checkout-index -a
git filter-branch
git difftool
git mergetool
git archive -o x.tar HEAD
git archive HEAD
git bundle create x HEAD
git hash-object -w x
git ls-remote
git ls-remote 'ext::sh -c x'
git show-index
git unknown-command
git lfs ls-files
git rm --cached x
git rm -n x
git instaweb
git help log
git send-email
GIT_EXTERNAL_DIFF=./evil git diff
GIT_PAGER=./evil git log
GIT_SSH_COMMAND=./evil git status
GIT_CONFIG_COUNT=1 git status
GIT_DIR=/x git status
HOME=/tmp git log
XDG_CONFIG_HOME=/tmp git log
PAGER=./evil git log
""")

DESTRUCTIVE = split(r"""
git reset
git reset --hard
git reset --hard HEAD~1
git reset --soft HEAD~1
git reset HEAD file
git -C sub reset --hard
git -C sub -C deeper reset --hard
git --git-dir=.git --work-tree=. reset --hard
git --git-dir .git reset --hard
git -c core.pager=./evil reset --hard
git --no-pager reset --hard
git -p reset
git clean -fd
git clean -fdx
git clean -f -n -i
git clean
git checkout main
git checkout -- file
git checkout -b new
git checkout HEAD~1 -- src
git checkout .
git restore file
git restore --staged file
git restore --source=HEAD~1 .
git switch main
git switch -c new
git stash
git stash push -m x
git stash pop
git stash apply
git stash drop
git stash clear
git stash $x
git rebase main
git rebase -i HEAD~3
git rebase --abort
git merge feature
git merge --abort
git pull
git pull --rebase
git rm file
git rm -r dir
git mv a b
git diff --output=out
git diff --output out
git diff --outp=out
git log --output=out
git show --output=out HEAD
git diff -M --output=out
git shortlog -n --output=out
git stash show --output=out
git log -p > out.patch
sudo git reset --hard
env git reset --hard
cd sub && git reset --hard
git fetch && git reset --hard origin/main
(cd sub; git checkout .)
git status; git clean -fd
if git diff --quiet; then git pull; fi
"git" "reset" --hard
g\it re'set' --hard
/usr/bin/git reset --hard
""")
