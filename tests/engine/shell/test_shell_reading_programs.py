"""Programs that only read, and the options and operands that make an exception of them."""

import pytest

READ_ONLY = r"""
ls
ls -la
ls -la src tests
ls --color=auto -R | head -50
ls *.py
l{s,}
ls -1 "$HOME/src"
/bin/ls
/usr/bin/ls -l
/usr/local/bin/rg foo
dir
pwd
cat README.md
cat a.txt b.txt | wc -l
cat -n src/main.py | sed -n '10,20p'
cat -- -odd-name
cat "$f"
cat $files
tac log.txt
rev names
head -n 20 file.txt
head -c 100 blob.bin
head -n"$N" file
tail -n 100 app.log
tail -f app.log
tail -n +2 data.csv | cut -d, -f1
wc -l *.py
wc -c < big.bin
nl -ba src/main.py
cut -d: -f1,3 /etc/passwd
paste a b
join a b
comm -12 a b
tr a-z A-Z < in.txt
fold -w 80 text
fmt -w 72 text
column -t -s, data.csv
od -c file | head
hexdump -C file | head -3
xxd file
xxd -l 64 -g 1 file
xxd -p file
strings -n 8 binary
stat -c %s file
stat file
file src/* bin/tool
file -b --mime-type image.png
du -sh .
du -sh * | sort -h
df -h
basename /a/b/c.txt .txt
dirname src/app/main.py
realpath .
readlink -f link
cmp a b
diff a b
diff -ru old new
diff <(sort a) <(sort b)
md5sum file
sha256sum dist/*.whl
sha256sum -c SHA256SUMS
cksum file
base64 file
base64 -d < file.b64
sort file
sort -u names | uniq -c | sort -rn
sort -t, -k2,2n data.csv
sort -k 2 -n file
sort --key=2 --numeric-sort file
sort -to file
sort -S 1G -T /tmp file
uniq file
uniq -c file
uniq -f 1 file
uniq --skip-fields 1 file
uniq -d < file
shuf -n 3 names
shuf -i 1-10
iconv -f latin1 -t utf8 file
tree
tree -L 2
tree -a -I node_modules
tree -L 2 src
grep foo file
grep -rn "def main" src
grep -R --include='*.py' -n TODO .
grep -c . file
grep -E 'a|b' file
grep -o 'x' file
grep -e foo -e bar file
grep -f patterns.txt file
grep -v '^#' conf | grep -v '^$'
grep -rl foo . | sort
egrep 'a|b' file
fgrep x file
zgrep foo log.gz
zcat log.gz | head
rg foo
rg -n 'fn main' src
rg --files
rg -l foo -g '*.py'
rg -uu foo src
rg --type py foo
rg -A 3 -B 3 foo file.txt
rg -e "$pattern" src
rg -- "$pattern" src
rg --pre-glob '*.pdf' foo
jq
jq . package.json
jq -r '.scripts | keys[]' package.json
jq --arg name x '.[$name]' data.json
jq -f prog.jq data.json
find .
find . -name '*.py'
find . -type f -name '*.py' -not -path './venv/*'
find src tests -maxdepth 2 -print
find . -newer ref -size +10k -ls
find . -type d \( -name a -o -name b \) -prune -o -print0
find . -name "$pattern"
find . -printf '%p %s\n'
find -L . -name x
find . -exec cat {} \;
find . -type f -exec grep -l foo {} +
find . -name '*.c' -exec wc -l {} ';'
find . -exec sh -c 'wc -l "$1"' _ {} \;
find /etc -name hosts
fd pattern
fd -e py main src
echo hello
echo "a > b"
echo 'rm -rf /'
echo rm -rf x
echo $HOME
echo "$PATH"
echo -e 'a\tb'
echo *
echo {a,b,c}
printf '%s\n' a b
printf "%d\n" 5
printf -- '-x\n'
printf -v out '%s' x
true
false
:
test -f file
test -d src -a -f x
test "$a" = b
[ -f file ]
[ ! -e x ]
[ "$a" = "$b" ]
[ "$a" != "" ] && echo yes
[[ -f file ]]
[[ $x == a* ]]
[[ -n $x && -z $y ]]
[[ -f a || -f b ]]
[[ $x =~ ^a(b|c)$ ]]
which python3
type ls
command -v git
whereis ls
date
date +%Y-%m-%d
date -u +%s
date -d yesterday +%F
date -r file
date -f "$x"
date -Iseconds
uname -a
hostname
hostname -f
hostname -I
id
id -un
whoami
groups
who
w
uptime
nproc
free -h
lscpu
locale
getconf ARG_MAX
getent passwd root
env
env | sort
printenv PATH
ps aux
ps -ef | grep python
pgrep -fl python
sleep 1
seq 1 10
seq 10 | tac
expr 1 + 2
factor 12
numfmt --to=iec 2048
yes | head -1
tsort deps
bc <<< '1+1'
echo '2*3' | bc
cal
less file
less -R file
git log | less
cat file | less -N
more file
man ls
man 3 printf
man -k socket
help cd
tar tf a.tar
tar -tf a.tar
tar tzf a.tgz
tar -tvf a.tar.gz
tar --list -f a.tar
unzip -l a.zip
unzip -v a.zip
unzip -p a.zip member.txt
zipinfo a.zip
python3 --version
node --version
gcc --version
make --version
git --version
rm --version
rm --help
sed --version
dd --help
awk '{print $1}' file
awk -F, '{print $2}' data.csv
awk -F: -v n=3 '$3 > n {print $1}' /etc/passwd
awk '$3 > 5' file
awk '/start/,/end/' file
awk '/a|b/ {print}' file
awk 'NR==1 || NR==5 {print}' file
awk 'BEGIN {print 1 || 0}'
awk '{s+=$1} END {print s}' n.txt
awk 'NR>=10 && NR<=20' file
sed -n '1,5p' file
sed -n 5p file
sed 's/a/b/' file
sed 's/a/b/g; s/c/d/' file
sed -E 's/(a|b)+/x/g' file
sed -e 's/a/b/' -e '/x/d' file
sed '/^$/d' file
sed -n '/start/,/end/p' file
sed 's|/usr|/opt|g' file
sed 's/[^/]*$//' file
sed '1d;$d' file
sed -n '$=' file
sed '5q' file
sed 'y/abc/ABC/' file
sed '/x/!d' file
sed -n '/a/{p;q}' file
sed ':a;N;$!ba;s/\n/ /g' file
sed 's/^[ \t]*//' file
sed '2i\
inserted' file
sed 'r header.txt' file
sed --quiet --expression='1p' file
sed -ne '2p' file
sed 's/w/e/' file
sed 's/[/]w x/y/' file
sed -n 's/.*w file/x/p' file
sed '0~3d' file
sed '$!N;P;D' file
"""

UNKNOWN = r"""
rg --pre cat foo
rg --pre=./evil foo
rg --hostname-bin ./evil foo
rg --ignore --pre=./evil foo
rg "$pattern" src
rg foo *.txt
ag --pager ./evil foo
sort --compress-program=./evil file
sort --compress-prog ./evil -S 1 file
sort $flags file
sort "$file"
sort *
uniq *
uniq $x
xxd *
tree $x
tree -R -L 1
tree -aR
file -C -m magic
file --compile -m magic
file -bC -m magic
diff3 --diff-program=./evil a b c
sdiff --diff-program ./evil a b
date -s 12:00
date --set=12:00
date 010203042020
date $x
hostname newname
hostname -F file
less '+!touch x' file
less +F file
less -o log file
less -Olog file
less --log-file=log file
less -k keys file
less $x
more '+!touch x' file
man -P ./evil ls
man -H./evil ls
man -l ./page.1
man ./page.1
tar xf a.tar
tar cf a.tar src
tar czf a.tgz src
tar -xzf a.tgz -C dir
tar rf a.tar x
tar tf a.tar --to-command=./evil
tar -tf a.tar --checkpoint=1 --checkpoint-action=exec=./evil
tar -I ./evil -tf a.tar
tar tf host:a.tar
tar -t -f a.tar --use-compress-program=./evil
tar
unzip a.zip
unzip -o a.zip
unzip -d out a.zip
unzip -lo a.zip -d out
find $x
find "$dir" -name x
find *
find . $x
find . -exec ./tool {} \;
find . -exec sh -c 'cat {}' \;
find . -exec sort {} + -files0-from list
find . -files0-from -
find . -execdir uniq {} \;
find . -exec uniq {} +
fd -x cat
fd -X wc
fd pattern --exec cat
fd -Hx cat
printf "$fmt"
printf $x
printf -v 'a[$(id)]' x
printf -v "$name" x
[ $x -gt 5 ]
[ $x ]
[ "$a" "$b" ]
[ -v 'a[$(id)]' ]
[ -v $x ]
test $x
test "$op" x
[[ -v $x ]]
[[ $x -eq 1 ]]
[[ a || b ]]
[[ a > b ]]
[[ $x =~ a|b ]]
python3 -c 'print(1)'
python3
python script.py
python -m pytest
node app.js
perl -e 'print 1'
perl -ne 'print if /x/' file
ruby -e 'puts 1'
make
make -n
npm test
npm install
pip install x
cargo build
go build ./...
yarn --version
cargo --version
go version
python --version extra
docker ps
kubectl get pods
curl https://example.org/
curl -s -o out.html https://example.org/
wget https://example.org/
ping -c1 localhost
ssh host ls
scp a host:b
rsync -a a/ b/
touch x
mkdir -p build
ln -s a b
chmod +x run.sh
chown me x
gzip file
zip a.zip a
kill 1
pkill x
crontab -l
mount
ip a
systemctl status x
vim file
ed file
split file
csplit file 10
patch -p1
sqlite3 db .tables
awk -f prog.awk file
awk "$prog" file
awk '{print > "out"}' file
awk '{print | "sh"}' file
awk 'BEGIN {system("id")}'
awk 'BEGIN {"id" | getline x; print x}'
awk '@load "x"'
awk '{printf "%s", $1 >> "out"}' file
gawk -o out.txt '{print}' file
gawk -d '{print}' file
awk -F $sep '{print}' file
mawk -W exec prog
sed -f script.sed file
sed "s/a/$b/" file
sed -n "${n}p" file
sed $x file
sed 's/a/touch x/e' file
sed '1e touch x' file
sed e file
sed '/x/e' file
sed 's/a/b' file
sed 'k' file
sed s/a*/b/ file
sed -n *p file
base64 "$x"
env -S 'ls -l'
unknown-program
./ls
/tmp/ls
~/bin/ls
bin/ls
/usr/bin/../../tmp/ls
/opt/bin/cat x
"$PAGER" file
$cmd file
`which ls`
"ls -l"
''
"""

DESTRUCTIVE = r"""
sort -o out file
sort -oout file
sort -uo file file
sort --output=out file
sort --output out file
sort --outp=out file
sort --o out file
sort file -o out
sort -nro out file
sort {-o,out} file
sort "-o" out file
sort \-o out file
sort $'-o' out file
sort $'\x2do' out file
sort -t , -o out file
sort -k 1 -o out file
sort -o "$out" file
sort --output="$out" file
uniq in out
uniq -c in out
uniq - out
uniq < in - out
xxd in out
xxd -r in out
xxd -r -p hex.txt out.bin
xxd -ps in out
xxd -bits in out
xxd -c 8 in out
tree -o out
tree -L 2 -o out.txt
shuf -o out file
shuf --output=out file
iconv -f a -t b -o out file
base64 -i in -o out
sdiff -o out a b
find . -delete
find . -name '*.pyc' -delete
find . -exec rm {} \;
find . -exec rm -f {} +
find . -execdir rm {} \;
find . -ok rm {} \;
find . -okdir mv {} x \;
find . -fprint out
find . -fprint0 out
find . -fprintf out '%p'
find . -fls out
find . -exec cp {} {}.bak \;
find . -exec sh -c 'rm "$1"' _ {} \;
find . -exec echo {} + -delete
find . -exec echo \; -delete
find . -exec sed -i s/a/b/ {} +
find . -type f -print0 | xargs -0 rm
fd -x rm
fd '\.bak$' -X rm
sed -i s/a/b/ f
sed -i.bak s/a/b/ f
sed -i '' s/a/b/ f
sed -i'' s/a/b/ f
sed -ni p f
sed -Ei s/a/b/ f
sed -n -i p f
sed -ibak -e s/a/b/ f
sed -e s/a/b/ -i f
sed s/a/b/ f -i
sed --in-place s/a/b/ f
sed --in-place=.bak s/a/b/ f
sed --in-pl s/a/b/ f
sed -s -i s/a/b/ a b
sed -zi s/a/b/ f
sed -I .bak s/a/b/ f
gsed -i s/a/b/ f
sed "-i" s/a/b/ f
sed -n 'w out' f
sed 's/a/b/w out' f
sed '/x/w out' f
sed -n '/x/{w out
}' f
sed '1!G;h;$!d;w out' f
sed 's/[/]/x/w out' f
sed -e p -e 'w out' f
sed '$W out' f
awk -i inplace '{print}' f
gawk -i inplace '{print}' f
gawk -iinplace '{print}' f
awk --include=inplace '{print}' f
awk --include inplace '{print}' f
"""


def lines(table: str) -> list[str]:
    """The commands of a table; a line that goes on holds the next one too."""
    commands: list[str] = []
    for line in table.strip().split("\n"):
        if commands and commands[-1].count("'") % 2:
            commands[-1] += "\n" + line
        else:
            commands.append(line)
    return commands


@pytest.mark.parametrize("command", lines(READ_ONLY))
def test_reading_is_read_only(judge, command):
    assert judge(command).verdict == "read-only", judge(command).reason


@pytest.mark.parametrize("command", lines(UNKNOWN))
def test_what_may_do_more_is_unknown(judge, command):
    assert judge(command).verdict == "unknown", judge(command).reason


@pytest.mark.parametrize("command", lines(DESTRUCTIVE))
def test_what_certainly_writes_is_destructive(judge, command):
    assert judge(command).verdict == "destructive", judge(command).reason
