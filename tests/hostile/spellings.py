"""Ways to spell destruction and theft, for a shell. `$V` is a folder of the victim with the files
`precious` and `sub/deep`; each way has a folder of its own to begin in, and `$S` takes the loot.

A list of dangerous words passes most of them. None does harm inside a boundary.
"""

DESTROY = r"""
rm -rf $V
'r'm -rf $V
r""m -rf $V
\rm -rf $V
rm${IFS}-rf${IFS}$V
$(echo rm) -rf $V
`echo rm` -rf $V
/bin/rm -rf $V
/usr/../usr/bin/rm -rf $V
/usr/bin/r[m] -rf $V
command rm -rf $V
env rm -rf $V
env -i /bin/rm -rf $V
eval "rm -rf $V"
eval $(echo cm0gLXJm | base64 -d) $V
bash -c "rm -rf $V"
sh -c 'rm -rf "$0"' $V
echo "rm -rf $V" | sh
echo "rm -rf $V" > s.sh; sh s.sh
echo "rm -rf $V" > s.sh; . ./s.sh
echo "rm -rf $V" > s.sh; BASH_ENV=s.sh bash -c :
x=rm; $x -rf $V
a=r b=m; $a$b -rf $V
$'\x72\x6d' -rf $V
printf -v c '\162\155'; $c -rf $V
$(rev <<< mr) -rf $V
$(tr a-z n-za-m <<< ez) -rf $V
{rm,-rf,"$V"}
f() { rm -rf "$@"; }; f $V
trap "rm -rf $V" EXIT
rm -rf $V & wait
coproc rm -rf $V; wait
setsid -w rm -rf $V
nohup rm -rf $V
nice rm -rf $V
timeout 5 rm -rf $V
exec rm -rf $V
xargs rm -rf <<< $V
ls -d $V | xargs -I{} rm -rf {}
find $V -delete
find $V -type f -exec rm {} +
find $V -type f -print0 | xargs -0 rm
cd $V && rm -rf ./*
cd $V/.. && rm -rf "$(basename $V)"
rm -rf "$(realpath --relative-to=. $V)"
ln -s $V link; rm -rf link/*
rm -rf /proc/self/root$V
rm -rf /proc/self/cwd/"$(realpath --relative-to=. $V)"
unlink $V/precious
shred -u $V/precious
truncate -s 0 $V/precious
> $V/precious
echo x > $V/precious
echo x >> $V/precious
echo x 1<> $V/precious
exec 3> $V/precious
tee $V/precious < /dev/null
cp /dev/null $V/precious
mv $V/precious gone
mv $V gone
dd if=/dev/zero of=$V/precious bs=1 count=4 status=none
sed -i s/canary/x/ $V/precious
sort -o $V/precious /dev/null
uniq /dev/null $V/precious
gzip $V/precious
install /dev/null $V/precious
ln -sf /dev/null $V/precious
ln $V/precious here; echo x > here
tar -cf t.tar --remove-files $V
mkdir $V/new
touch $V/new
awk 'BEGIN { system("rm -rf " ENVIRON["V"]) }'
awk 'BEGIN { printf "" > (ENVIRON["V"] "/precious") }'
perl -e 'unlink "$ENV{V}/precious"'
perl -pi -e 's/canary/x/' $V/precious
python3 -c 'import os; os.unlink(os.environ["V"] + "/precious")'
python3 -c 'import os, shutil; shutil.rmtree(os.environ["V"])'
printf 'all:\n\trm -rf %s\n' $V > Makefile; make -s
git init -q r; git -C r -c core.fsmonitor="rm -rf $V; false" status
git init -q $V; git -C $V clean -fdxq
git init -q r; git -C r -c alias.x='!rm -rf $V' x
busybox rm -rf $V
rsync -a --delete ./ $V/
""".strip().splitlines()

STEAL = r"""
cat $V/precious > $S
cp $V/precious $S
head -c 100 < $V/precious > $S
while read -r line; do echo $line; done < $V/precious > $S
echo "$(<$V/precious)" > $S
tar -cf $S $V
dd if=$V/precious of=$S status=none
rev $V/prec* | rev > $S
base64 $V/precious | base64 -d > $S
ln -s $V/precious link; cat link > $S
grep -rh . $V > $S
python3 -c 'import os; open(os.environ["S"], "w").write(open(os.environ["V"] + "/precious").read())'
""".strip().splitlines()

PROGRAMS = ("busybox", "rsync", "git", "make", "perl", "python3")
"""What a way may need and a machine may lack."""
