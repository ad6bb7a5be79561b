"""Programs and redirects that change files, builtins, and wrappers they are seen through."""

from tests.engine.shell.tables.lines import split

DESTRUCTIVE = split(r"""
rm file
rm -rf build
rm -- -odd
rm "$file"
rm $files
rm *
rm -f *.pyc
\rm file
'rm' file
"rm" file
r"m" file
r\m file
$'rm' file
/bin/rm file
/usr/bin/rm file
rmdir dir
unlink file
cp a b
cp -r src dst
cp -t dst a b
install -m 755 a /usr/local/bin/a
install -d dir
mv a b
mv -- a b
truncate -s 0 file
dd if=/dev/zero of=file bs=1M count=1
dd of=file
shred -u file
tee file
tee -a file
echo x | tee file
echo x | tee a b
echo x | tee -- -odd
echo x | sudo tee /etc/hosts
> file
: > file
echo x > file
echo x >> file
echo x >| file
echo x >file
echo x>file
echo x 1> file
echo x 2> file
echo x 2>> file
make 2>errors.log
echo x &> file
echo x &>> file
echo x >& file
echo x <> file
exec 3<>file
exec 3>file
exec > log 2>&1
cat > file
cat a > b 2>/dev/null
> "$file"
echo x > "$dir/file"
echo x > $(mktemp)
echo x >/dev/sda
echo x > /dev/fd/3
echo x > /proc/self/fd/1
> a > b
ls > list.txt
ls -l 2>&1 > out
{ ls; } > out
( ls ) > out
for f in a b; do echo $f; done > out
while read l; do echo $l; done < in > out
if true; then ls; fi > out
case x in x) ls;; esac > out
f() { ls; } > out
[ a > b ]
[ -f x ] > out
[[ -f x ]] > out
perl -pi -e 's/a/b/' file
perl -i -pe 's/a/b/' file
perl -i.bak -pe 's/a/b/' file
perl -p -i -e 's/a/b/' file
perl -pi.bak -e 's/a/b/' file
perl -pie 's/a/b/' file
perl -0777 -pi -e 's/a/b/' file
perl -0777pi -e 's/a/b/' file
perl -0pi -e 's/a/b/' file
perl -lpi -e 's/a/b/' file
perl -l012pi -e 's/a/b/' file
perl -wpi -e 's/a/b/' file
perl -Mstrict -pi -e 's/a/b/' file
perl -pe 's/a/b/' -i file
perl -F: -i -lane 'print' file
perl -e 'x' -pi file
perl -I lib -pi -e x file
perl "-pi" -e x file
ruby -i -pe 'x' file
ruby -pi -e 'x' file
ruby -i.bak -pe 'x' file
ruby -W0 -pi -e x file
sudo rm x
sudo -u root rm x
sudo -E -H rm x
sudo -n -- rm x
sudo --user=root rm x
sudo --user root rm x
sudo FOO=1 rm x
doas rm x
doas -u root rm x
env rm x
env FOO=1 rm x
env -i rm x
env -u FOO rm x
env - rm x
env -C sub rm x
env -S 'rm x'
/usr/bin/env rm x
nice rm x
nice -n 10 rm x
nice -n10 rm x
nice -10 rm x
nice --adjustment=5 rm x
ionice -c 3 rm x
ionice -c2 -n0 rm x
nohup rm x
timeout 5 rm x
timeout -k 1 5 rm x
timeout --signal=KILL 5s rm x
stdbuf -oL rm x
setsid rm x
setsid -w rm x
chrt -b 0 rm x
taskset -c 0 rm x
time rm x
time -p rm x
/usr/bin/time -v rm x
time -o figures rm x
xargs rm
xargs -0 rm
xargs -n 1 rm -f
xargs -I{} rm {}
xargs -I % sh -c 'rm %'
xargs -i rm {}
xargs -a list rm
xargs -r -d '\n' rm --
xargs sed -i s/a/b/
ls | xargs rm
command rm x
command -p rm x
builtin command rm x
exec rm x
exec -a name rm x
eval rm x
eval 'rm x'
eval "rm" "x"
watch rm x
watch -n 1 'rm x'
watch -x rm x
parallel rm ::: a b
parallel 'rm {}' ::: a b
parallel ::: 'rm a' 'rm b'
sh -c 'rm x'
bash -c 'rm x'
bash -lc 'rm x'
bash -ec 'rm x'
bash -o pipefail -c 'rm x'
bash --norc -c 'rm x'
bash -c "rm $x"
bash -c "cd sub && rm x"
bash -c 'rm "$1"' _ x
dash -c 'rm x'
zsh -c 'rm x'
zsh -lc 'rm x'
ksh -c 'rm x'
sh -c "sh -c 'rm x'"
sudo bash -c 'echo x > /etc/y'
su -c 'rm x'
busybox rm x
coproc rm x
trap 'rm x' EXIT
trap "rm -f $tmp" EXIT INT
script -c 'rm x' log
poetry run rm x
uv run rm x
bundle exec rm x
strace -o trace rm x
chroot /mnt rm x
flock lock rm x
npx rm x
unshare rm x
sudo env nice timeout 5 sh -c 'xargs rm'
bash <<< 'rm x'
""")
