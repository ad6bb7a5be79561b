"""Programs that only read, and the options and operands that make an exception of them.

The word TODO in one of the commands is what it looks for, as people do.
"""

from tests.engine.shell.tables.lines import split

READ_ONLY = split(r"""
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
printf '100%%\n'
printf '%%n\n'
printf "done: $x\n"
printf '%-10s|%5.2f|%x\n' a 1.5 255
printf '%(%F)T\n' -1
printf '%s %s\n' "$a" "$b"
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
""")
