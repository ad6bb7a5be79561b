"""The paths a command names, those outside the workspace, and children that outlive the command."""

import os

import pytest

from engine.tools.shell import understand

# command, the paths it names in order, those outside /w/app
PATHS = [
    ("ls", (), ()),
    ("ls src", ("src",), ()),
    ("ls -la src tests", ("src", "tests"), ()),
    ("cat a 'b c' \"d\" e\\ f", ("a", "b c", "d", "e f"), ()),
    ("cat a a", ("a",), ()),
    ("cat -", (), ()),
    ("cat /w/app/a", ("/w/app/a",), ()),
    ("cat ./a ../app/b", ("./a", "../app/b"), ()),
    ("cat ..", ("..",), ("..",)),
    ("cat /etc/passwd", ("/etc/passwd",), ("/etc/passwd",)),
    ("cat /w/application", ("/w/application",), ("/w/application",)),
    ("cat src/../../x", ("src/../../x",), ("src/../../x",)),
    ("cat //etc/passwd", ("//etc/passwd",), ("//etc/passwd",)),
    ("cat ~/notes", ("/home/user/notes",), ("/home/user/notes",)),
    ("cat ~", ("/home/user",), ("/home/user",)),
    ('cat "~/notes"', ("~/notes",), ()),
    ("cat $HOME/notes", ("/home/user/notes",), ("/home/user/notes",)),
    ('cat "${HOME}/notes"', ("/home/user/notes",), ("/home/user/notes",)),
    ('python3 -c \'open("/etc/passwd", "w")\'', ("/etc/passwd",), ("/etc/passwd",)),
    ("python3.11 -c 'import os; os.chdir(\"..\")'", ("..",), ("..",)),
    ("python3 - <<'EOF'\nopen('/etc/x', 'w')\nEOF", ("/etc/x",), ("/etc/x",)),
    ('python3 <<< \'open("/w/app/a"); print(1 / 2, "a/b")\'', ("/w/app/a",), ()),
    ("perl -e 'unlink \"/etc/y\"'", ("/etc/y",), ("/etc/y",)),
    ("perl -pi -e 's,a,\"b/c\",' x", ("x",), ()),
    ("node -e 'fs.rmSync(`../x`)'", ("../x",), ("../x",)),
    ("curl -o x file:///etc/z", ("x", "/etc/z"), ("/etc/z",)),
    ("frobnicate file:///etc/z", ("/etc/z",), ("/etc/z",)),
    ("git commit -m \"look at '/etc/x'\"", (), ()),
    ("cat $X", (), ()),
    ('cat "$X/a"', (), ()),
    ("cat *.txt", ("*.txt",), ()),
    ("cat {a,b}.txt", ("a.txt", "b.txt"), ()),
    ("cat f{1..3}", ("f1", "f2", "f3"), ()),
    ("cat {a,../b}", ("a", "../b"), ("../b",)),
    ("cat <in", ("in",), ()),
    ("cat < /etc/hosts", ("/etc/hosts",), ("/etc/hosts",)),
    ("cat <(ls sub)", ("sub",), ()),
    ("echo /etc/passwd", (), ()),
    ("printf '%s' /etc/passwd", (), ()),
    ("grep /etc/x file", ("file",), ()),
    ("grep -e /etc/x file", ("file",), ()),
    ("grep -f /etc/x file", ("/etc/x", "file"), ("/etc/x",)),
    ("grep -rn x --include='*.py' src", ("src",), ()),
    ("rg x src ../lib", ("src", "../lib"), ("../lib",)),
    ("sed -n 's/a/b/p' file", ("file",), ()),
    ("sed -n -e 1p -e 2p a b", ("a", "b"), ()),
    ("awk '/x/{print}' file", ("file",), ()),
    ("awk -v x=1 '{print}' a.txt x=2 b.txt", ("a.txt", "b.txt"), ()),
    ("find src -name '*.py'", ("src",), ()),
    ("find . /etc -type f", (".", "/etc"), ("/etc",)),
    ("sort -T /tmp file", ("/tmp", "file"), ("/tmp",)),
    ("jq .a/b data.json", ("data.json",), ()),
    ("head -n 5 file", ("file",), ()),
    ("rm a b", ("a", "b"), ()),
    ("rm -rf -- a -b", ("a", "-b"), ()),
    ("rm ../../x", ("../../x",), ("../../x",)),
    ("rm ~/x", ("/home/user/x",), ("/home/user/x",)),
    ("rm -rf /", ("/",), ("/",)),
    ("rm -rf .", (".",), ()),
    ("rm *", ("*",), ()),
    ("rm ../*", ("../*",), ("../*",)),
    ("rm .*", (".*",), (".*",)),
    ("rm .[a-z]*", (".[a-z]*",), ()),
    ("rm ~other/x", (), ("~other/x",)),
    ("rm $X", (), ("$X",)),
    ('rm "$X"', (), ('"$X"',)),
    ('rm "$(pwd)/../x"', (), ('"$(pwd)/../x"',)),
    ("rm `cat list`", ("list",), ("`cat list`",)),
    ("rm a $X b", ("a", "b"), ("$X",)),
    ("rm ~+/x", (), ("~+/x",)),
    ("HOME=/x; rm ~/y", (), ("~/y",)),
    ("IFS=/; rm $HOME", (), ("$HOME",)),
    ("rm {a,$X}", ("a",), ("{a,$X}",)),
    ("cp a /tmp/b", ("a", "/tmp/b"), ("/tmp/b",)),
    ("cp -t /opt a b", ("a", "b", "/opt"), ("/opt",)),
    ("cp --target-directory=/opt a", ("a", "/opt"), ("/opt",)),
    ("mv a ../b", ("a", "../b"), ("../b",)),
    ("install -m 755 a /usr/local/bin/a", ("a", "/usr/local/bin/a"), ("/usr/local/bin/a",)),
    ("dd if=/dev/zero of=disk.img bs=1M", ("/dev/zero", "disk.img"), ()),
    ("dd if=a of=/dev/sda", ("a", "/dev/sda"), ("/dev/sda",)),
    ('dd if=a of="$X"', ("a",), ('of="$X"',)),
    ("truncate -s 0 log", ("log",), ()),
    ("tee /etc/x", ("/etc/x",), ("/etc/x",)),
    ("echo x > out", ("out",), ()),
    ("> /etc/passwd", ("/etc/passwd",), ("/etc/passwd",)),
    ("> out cat in", ("out", "in"), ()),
    ("cat in > out", ("in", "out"), ()),
    ('echo x > "$X"', (), ('"$X"',)),
    ('echo x > "$X/y"', (), ('"$X/y"',)),
    ("echo x > ../y", ("../y",), ("../y",)),
    ("echo x 2> /var/log/y", ("/var/log/y",), ("/var/log/y",)),
    ("ls > /dev/null 2>&1", ("/dev/null",), ()),
    ("echo x > /dev/stderr", ("/dev/stderr",), ()),
    ("ls > >(cat)", (), ()),
    ("cat > a <<EOF\nx\nEOF", ("a",), ()),
    ("sed -i s/a/b/ config.py", ("config.py",), ()),
    ("sed -i '' s/a/b/ config.py", ("config.py",), ()),
    ("sed -i s/a/b/ $X", (), ("$X",)),
    ("sed -n '1,5w /etc/x' f", ("/etc/x", "f"), ("/etc/x",)),
    ("perl -pi -e 's/a/b/' x.c /etc/y", ("x.c", "/etc/y"), ("/etc/y",)),
    ("sort -o /etc/x file", ("/etc/x", "file"), ("/etc/x",)),
    ("uniq a ../b", ("a", "../b"), ("../b",)),
    ("find src -delete", ("src",), ()),
    ("find /tmp/x -delete", ("/tmp/x",), ("/tmp/x",)),
    ("find $X -delete", (), ("$X",)),
    ("find src -exec rm {} +", ("src",), ()),
    ("find src -exec mv {} /tmp \\;", ("src", "/tmp"), ("/tmp",)),
    ("find src -exec cp {} {}.bak \\;", ("src",), ()),
    ("find . -fprint /tmp/x", (".", "/tmp/x"), ("/tmp/x",)),
    ("ls | xargs rm", (), ("(input of xargs)",)),
    ("ls | xargs rm -rf sub", ("sub",), ("(input of xargs)",)),
    ("ls | xargs cat", (), ()),
    ("sudo rm /etc/x", ("/etc/x",), ("/etc/x",)),
    ("env -C /etc rm x", ("/etc", "x"), ("/etc", "x")),
    ("sh -c 'rm /etc/x'", ("/etc/x",), ("/etc/x",)),
    ('bash -c "rm $X"', (), ('"rm $X"',)),
    ("bash -c 'rm \"$1\"' _ x", (), ('"$1"',)),
    ("bash run.sh", ("run.sh",), ()),
    ("bash /opt/run.sh", ("/opt/run.sh",), ("/opt/run.sh",)),
    ("eval 'rm ../x'", ("../x",), ("../x",)),
    # where the shell is
    ("cd sub", ("sub",), ()),
    ("cd /etc", ("/etc",), ("/etc",)),
    ("cd /etc && rm x", ("/etc", "x"), ("/etc", "x")),
    ("cd /etc; ls", ("/etc",), ("/etc",)),
    ("cd ..; rm x", ("..", "x"), ("..", "x")),
    ("cd sub && rm ../x", ("sub", "../x"), ()),
    ("cd sub; rm ../x", ("sub", "../x"), ("../x",)),
    ("cd sub || exit 1; rm ../x", ("sub", "../x"), ()),
    ("cd sub || exit; cd deep || exit; rm ../../x", ("sub", "deep", "../../x"), ()),
    ("cd sub && cd .. && rm x", ("sub", "..", "x"), ()),
    ("cd sub && cd ../.. && rm x", ("sub", "../..", "x"), ("../..", "x")),
    ("cd sub && ls || rm ../x", ("sub", "../x"), ("../x",)),
    ("cd sub || ls && rm ../x", ("sub", "../x"), ("../x",)),
    ("while cd sub; do rm ../x; done", ("sub", "../x"), ("cd in a loop",)),
    ("until cd sub; do rm ../x; done", ("sub", "../x"), ("../x", "cd in a loop")),
    ("case x in x) cd sub;; esac; rm ../x", ("sub", "../x"), ("../x",)),
    ("if ls; then cd sub; else cd sub; fi; rm ../x", ("sub", "../x"), ("../x",)),
    ("if ls; then cd sub || exit; else cd sub || exit; fi; rm ../x", ("sub", "../x"), ()),
    ("if ls; then cd sub || exit; elif ls; then cd sub || exit; fi; rm ../x", ("sub", "../x"), ("../x",)),
    ("(cd sub && rm x); rm ../y", ("sub", "x", "../y"), ("../y",)),
    ("(cd /etc); rm x", ("/etc", "x"), ("/etc",)),
    ("(cd /etc && rm x); rm y", ("/etc", "x", "y"), ("/etc", "x")),
    ("{ cd /etc; }; rm x", ("/etc", "x"), ("/etc", "x")),
    ("cd /etc | rm x", ("/etc", "x"), ("/etc",)),
    ("cd /etc & rm x", ("/etc", "x"), ("/etc",)),
    ("if cd /etc; then rm x; fi", ("/etc", "x"), ("/etc", "x")),
    ("if cd /etc; then ls; else rm x; fi", ("/etc", "x"), ("/etc",)),
    ("cd /etc || rm x", ("/etc", "x"), ("/etc",)),
    ("! cd /etc && rm x", ("/etc", "x"), ("/etc",)),
    ("cd /etc && echo x > y", ("/etc", "y"), ("/etc", "y")),
    ("cd sub && echo x > ../y", ("sub", "../y"), ()),
    ("f() { cd /etc; }; f; rm x", ("/etc", "x"), ("/etc", "x")),
    ("f() { rm x; }; cd /etc && f", ("x", "/etc"), ("/etc", "x")),
    ("cd && rm x", ("/home/user", "x"), ("/home/user", "x")),
    ("cd ~ && rm x", ("/home/user", "x"), ("/home/user", "x")),
    ("cd $X && ls", (), ()),
    ("cd $X && rm y", ("y",), ("$X",)),
    ('cd "$(git rev-parse --show-toplevel)" && rm y', ("y",), ('"$(git rev-parse --show-toplevel)"',)),
    ("cd - && rm y", ("y",), ("-",)),
    ("pushd /etc && rm x; popd", ("/etc", "x"), ("/etc", "x")),
    ("pushd sub && make && popd && rm ../x", ("sub", "../x"), ("../x",)),
    ("pushd sub && rm ../x && popd", ("sub", "../x"), ()),
    ("CDPATH=/etc; cd sub && rm x", ("sub", "x"), ("CDPATH",)),
    ("shopt -s cdable_vars; cd sub && rm x", ("sub", "x"), ("shopt",)),
    ("popd && rm x", ("x",), ("popd",)),
    ("cd sub && make", ("sub",), ()),
    ("cd /srv && make", ("/srv",), ("/srv",)),
    ("for d in a b; do cd $d; rm x; cd ..; done", ("x", ".."), ("..", "$d", "cd in a loop")),
    # git
    ("git -C /other reset --hard", ("/other",), ("/other",)),
    ("git -C sub status", ("sub",), ()),
    ("git -C .. clean -fd", ("..",), ("..",)),
    ('git -C "$X" reset --hard', (), ('"$X"',)),
    ("git --git-dir=/o/.git --work-tree=/o checkout .", ("/o/.git", "/o", "."), ("/o/.git", "/o")),
    ("git --work-tree /o reset --hard", ("/o",), ("/o",)),
    ("GIT_DIR=/o/.git git reset --hard", ("/o/.git",), ("/o/.git",)),
    ("GIT_WORK_TREE=/o git checkout .", ("/o", "."), ("/o",)),
    ("git checkout -- a b", ("a", "b"), ()),
    ("git checkout HEAD~1 -- src/a.py", ("src/a.py",), ()),
    ("git checkout main", (), ()),
    ("git restore a", ("a",), ()),
    ("git -C sub restore ../../x", ("sub", "../../x"), ("../../x",)),
    ("git -C sub restore ../x", ("sub", "../x"), ()),
    ("git rm a/b", ("a/b",), ()),
    ("git diff --output=/tmp/p", ("/tmp/p",), ("/tmp/p",)),
    ("git commit -m 'fix a/b: use /etc'", (), ()),
    ("git clone https://example.org/a/b.git", (), ()),
    ("git clone https://example.org/a/b.git ../b", ("../b",), ("../b",)),
    # programs nobody knows
    ("make", (), ()),
    ("make -C /other", ("/other",), ("/other",)),
    ("make -C/other", ("/other",), ("/other",)),
    ("make -C ../other all", ("../other",), ("../other",)),
    ("make PREFIX=/usr install", ("/usr",), ("/usr",)),
    ("tool --out=/tmp/x", ("/tmp/x",), ("/tmp/x",)),
    ("tool --dir=.. -C..", ("..",), ("..",)),
    ("tool --out /tmp/x", ("/tmp/x",), ("/tmp/x",)),
    ('tool --out="$X/y"', (), ('--out="$X/y"',)),
    ("tool $X", (), ()),
    ("tool a/b ./c d.txt .. word", ("a/b", "./c", "d.txt", ".."), ("..",)),
    ("tool --verbose 1.2.3 x=1", (), ()),
    ("tool https://example.org/x", (), ()),
    ("python script.py data.csv", ("script.py", "data.csv"), ()),
    ("python -c 'print(1/2)'", (), ()),
    ("python ~/x.py", ("/home/user/x.py",), ("/home/user/x.py",)),
    ("./build.sh", ("./build.sh",), ()),
    ("../build.sh", ("../build.sh",), ("../build.sh",)),
    ("/opt/tool/run", ("/opt/tool/run",), ("/opt/tool/run",)),
    ("/usr/bin/make", (), ()),
    ("touch a ../b", ("a", "../b"), ("../b",)),
    ("mkdir -p build/x", ("build/x",), ()),
    ("ln -s /etc/passwd link", ("/etc/passwd", "link"), ("/etc/passwd",)),
    ("chmod 644 a", ("a",), ()),
    ("chown me:me /etc/x", ("/etc/x",), ("/etc/x",)),
    ("curl -o /tmp/x https://example.org/y", ("/tmp/x",), ("/tmp/x",)),
    ("wget -O out.html https://example.org/", ("out.html",), ()),
    ("tar xf a.tar -C /opt", ("a.tar", "/opt"), ("/opt",)),
    ("tar -cf../a.tar a --directory=..", ("a", "../a.tar", ".."), ("../a.tar", "..")),
    ("curl --output-dir .. -O https://example.org/y", ("..",), ("..",)),
    ("ln -st.. a", ("a", ".."), ("..",)),
    ("awk '{print > \"../x\"}' a", ("../x", "a"), ("../x",)),
    ("chroot .. rm x", ("..", "x"), ("..",)),
    ("flock ../l rm x", ("../l", "x"), ("../l",)),
    ("strace -o ../x ls", ("../x",), ("../x",)),
    ("sudo -R /x rm y", ("/x", "y"), ("/x",)),
    ("parallel rm ::: .. x", ("..",), ("..",)),
    ("fd x .. -x rm", ("..",), ("..",)),
    ("uv run --directory .. rm x", ("..",), ("..",)),
    ("source ./env.sh", ("./env.sh",), ()),
    (". /etc/profile", ("/etc/profile",), ("/etc/profile",)),
    ("source env", ("env",), ()),
]


@pytest.mark.parametrize(("command", "paths", "outside"), PATHS, ids=[case[0] for case in PATHS])
def test_a_command_names_its_paths(judge, command, paths, outside):
    understood = judge(command)

    assert (understood.paths, understood.outside) == (paths, outside)


def test_paths_are_seen_from_the_working_directory():
    understood = understand("rm ../x ../../y", cwd="/w/app/sub", root="/w/app")

    assert understood.outside == ("../../y",)


def test_without_a_home_what_lies_below_it_cannot_be_known():
    understood = understand("rm ~/x; cd; rm y $HOME/z", cwd="/w", root="/w")

    assert understood.outside == ("~/x", "cd", "$HOME/z")


def test_a_resolver_finds_what_a_link_hides(tmp_path):
    inside, elsewhere = tmp_path / "app", tmp_path / "elsewhere"
    (inside / "sub").mkdir(parents=True)
    elsewhere.mkdir()
    (inside / "link").symlink_to(elsewhere)
    (tmp_path / "alias").symlink_to(inside)

    def outside(command: str, root: str = str(inside)) -> tuple[str, ...]:
        return understand(command, cwd=str(inside), root=root, resolve=os.path.realpath).outside

    assert outside("rm link/x") == ("link/x",)
    assert outside("rm link/../app/x") == ()
    assert outside("cd link && rm x") == ("link", "x")
    assert outside("rm sub/x") == ()
    assert outside(f"rm {tmp_path}/alias/x") == ()
    assert outside("rm x", root=f"{tmp_path}/alias") == ()
    assert understand("rm link/x", cwd=str(inside), root=str(inside)).outside == ()


BACKGROUND = {
    "nohup make": True,
    "nohup make &": True,
    "setsid make": True,
    "sudo setsid make": True,
    "make &": True,
    "(make &)": True,
    "make & ls": True,
    "sh -c 'make &'": True,
    "make & disown": True,
    "sudo -b make": True,
    "make & wait": False,
    "make & wait $!": False,
    "make & pid=$!; ls; wait": False,
    "make": False,
    "make && ls": False,
    "ls 2>&1": False,
    "ls &> out": False,
    "echo 'a & b'": False,
    "cat a &>/dev/null": False,
}


@pytest.mark.parametrize(("command", "background"), BACKGROUND.items())
def test_a_child_that_outlives_the_command_is_said(judge, command, background):
    assert judge(command).background is background


CONFINED = {
    "rm a": True,
    "cp a b && mv b c": True,
    "cp -p a b": True,
    "sed -i s/a/b/ a": True,
    "sort a > b": True,
    "find a -exec cp {} b \\;": True,
    "cp -b a b": False,
    "cp --backup=numbered a b": False,
    "mv --back a b": False,
    "mv -S .old a b": False,
    "install -bm 644 a b": False,
    "install -D a b/c": False,
    "install -d b && cp a b": False,
    "sed -i.bak s/a/b/ a": False,
    "sed --in-place=.bak s/a/b/ a": False,
    "find a -exec cp {} {}.bak \\;": False,
    "rm a $x": False,
    "rm {a,b}": False,
    "rm a; make": False,
    "rm a &": False,
    "perl -i -pe s/a/b/ a": False,
    "cat a": False,
}


@pytest.mark.parametrize(("command", "confined"), CONFINED.items())
def test_a_command_that_changes_no_file_but_those_it_names_is_confined_to_them(judge, command, confined):
    assert judge(command).confined is confined


@pytest.mark.parametrize(
    ("command", "reason"),
    [
        ("ls", "only reads"),
        ("rm -rf build", "rm deletes build"),
        ("sed -i s/a/b/ config.py", "sed -i edits config.py in place"),
        ("git reset --hard HEAD~1", "git reset --hard changes the working tree"),
        ("echo x > out.txt", "writes to out.txt"),
        ("make; rm x", "rm deletes x"),
        ("make; ./x", "make is not known to be read-only"),
        ("find . -delete", "find -delete deletes what it finds"),
        ("rm " + "x" * 500, "rm deletes " + "x" * 39 + "…"),
        ("rm 'a\nb\x1b[31m'", "rm deletes a b [31m"),
    ],
)
def test_the_reason_is_one_short_line_for_people(judge, command, reason):
    assert judge(command).reason == reason
