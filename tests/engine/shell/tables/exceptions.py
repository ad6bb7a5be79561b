"""Options and operands that make a reading program do more than read."""

from tests.engine.shell.tables.lines import split

UNKNOWN = split(r"""
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
uniq in -c
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
find . -exec echo $x \;
jobs -x ls
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
""")

DESTRUCTIVE = split(r"""
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
xxd in -x
xxd -- -in out
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
""")
