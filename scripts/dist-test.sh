#!/usr/bin/env bash
# Tries the packages of `make dist` where nothing else is: a fresh Debian 12 (debootstrap, kept in the cache as a tarball), one
# with a systemd that is its first process, an empty folder for the RPM and the tarball, the root file system of the
# container. One line a claim, PASS or FAIL; it ends with 1 if one failed. In the first there is no systemd: what the unit
# would do is done by hand, as the user millrace.
#
# All of it happens in namespaces of its own (mounts, processes, network), so ports collide with nobody's and everything
# ends with the script. It needs root.
#
#   scripts/dist-test.sh [FOLDER]      FOLDER: what dist.sh made; $MILLRACE_DIST or dist/ beside what cargo builds
set -uo pipefail
export LC_ALL=C

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
. "$here/cache.sh"
target=$(realpath -m "${CARGO_TARGET_DIR:-$here/../target}")
out=$(realpath -m "${1:-${MILLRACE_DIST:-$target/dist}}")
cache=$(millrace_cache)
say() { printf 'dist-test: %s\n' "$*" >&2; }
die() { say "$*"; exit 1; }
[ "$(id -u)" = 0 ] || die "chroot and namespaces need root"

if [ -z "${MILLRACE_DIST_TEST_INSIDE:-}" ]; then
  # Outside, where there is a network: two fresh Debians, and a package that is newer.
  fresh() { # NAME PACKAGES: a tarball for the cache
    local tarball=$cache/$1.tar archive
    [ ! -s "$tarball" ] || return 0
    say "making $1 for the cache"
    archive=$(apt-get indextargets --no-release-info --format '$(REPO_URI) $(RELEASE) $(COMPONENT)' 'Created-By: Packages' |
      awk '$3 == "main" && $2 !~ /(security|updates|backports)/ { print $1; exit }')
    [ -n "$archive" ] || die "apt does not say where Debian comes from"
    debootstrap --variant=minbase --include="$2" bookworm "$cache/fresh.new" "$archive" >"$cache/fresh.log" 2>&1 ||
      { tail -n 5 "$cache/fresh.log" >&2; rm -rf "$cache/fresh.new"; die "debootstrap failed"; }
    tar -C "$cache/fresh.new" --exclude=./var/cache/apt/archives/*.deb --exclude=./var/lib/apt/lists/* -cf "$tarball.new" .
    rm -rf "$cache/fresh.new"
    mv "$tarball.new" "$tarball"
  }
  # What packages of Millrace depend on is in there: dpkg itself fetches nothing.
  fresh fresh-bookworm adduser,libssl3,libpcre2-8-0
  fresh fresh-bookworm-systemd adduser,libssl3,libpcre2-8-0,systemd-sysv,dbus
  work=$(mktemp -d)
  trap 'rm -rf "$work"' EXIT
  first=$(ls "$out"/millrace_*_amd64.deb 2>/dev/null | head -n 1)
  [ -n "$first" ] || die "there is no Debian package in $out: make dist"
  # The same package as a release after it would be, with a sentence more in the configuration that it brings.
  dpkg-deb -R "$first" "$work/newer"
  sed -i 's/^Version: .*/&.1/' "$work/newer/DEBIAN/control"
  echo '# A sentence of the newer version.' >> "$work/newer/etc/logrotate.d/millrace"
  dpkg-deb --root-owner-group -Znone --build "$work/newer" "$work/newer.deb" >/dev/null
  rm -rf "$work/newer"
  MILLRACE_DIST_TEST_INSIDE="$work" unshare --mount --net --pid --fork --kill-child --mount-proc -- \
    "${BASH_SOURCE[0]}" "$out"
  exit
fi

work=$MILLRACE_DIST_TEST_INSIDE
failed=0 passed=0
check() { # WORDS COMMAND…
  local words=$1
  shift
  if "$@" >"$work/said" 2>&1; then
    passed=$((passed + 1))
    printf 'PASS  %s\n' "$words"
  else
    failed=$((failed + 1))
    printf 'FAIL  %s\n' "$words"
    sed 's/^/      /' "$work/said" | tail -n 15
  fi
}
not() { ! "$@"; }
is() { [ "$1" = "$2" ] || { printf 'it is %s, not %s\n' "$1" "$2"; return 1; }; }
within() { # SECONDS COMMAND…: until it succeeds
  local until=$((SECONDS + $1))
  shift
  until "$@"; do
    [ "$SECONDS" -lt "$until" ] || return 1
    sleep 0.1
  done
}
python3 - <<'PYTHON' || die "the loopback interface stays down"
import fcntl, socket, struct
SIOCSIFFLAGS, IFF_UP = 0x8914, 1
fcntl.ioctl(socket.socket(), SIOCSIFFLAGS, struct.pack("16sh14x", b"lo", IFF_UP))
PYTHON

# ---- The Debian package.
box=$work/debian
mkdir "$box"
tar -C "$box" -xpf "$cache/fresh-bookworm.tar"
mount -t proc proc "$box/proc"
mount --rbind /dev "$box/dev"
printf '#!/bin/sh\nexit 101\n' > "$box/usr/sbin/policy-rc.d"
chmod 755 "$box/usr/sbin/policy-rc.d"
cp "$out"/millrace_*_amd64.deb "$box/tmp/first.deb"
cp "$work/newer.deb" "$box/tmp/newer.deb"
in_box() { chroot "$box" "$@"; }
mode() { is "$(in_box stat -c '%a %U:%G' "$1")" "$2"; }
ask() { # PORT USER SQL
  mariadb --no-defaults -h 127.0.0.1 -P "$1" -u "$2" "-p$2" --skip-ssl -N -B -e "$3"
}
serves() { is "$(ask 6033 shop 'SELECT 20 + 22' 2>&1)" 42; }
started=
start() {
  # Not a function of ours: its number has to be the proxy's, which is to get the signal.
  chroot --userspec=millrace:millrace "$box" /usr/bin/millrace -f -D /var/lib/millrace --sqlite3-server >>"$work/log" 2>&1 &
  started=$!
  within 30 in_box millrace health --live
}
stop() { kill -TERM "$started" && wait "$started"; }

check "the package installs where only its dependencies are" in_box dpkg -i /tmp/first.deb
check "it is configured" is "$(in_box dpkg-query -W -f '${Status}' millrace)" "install ok installed"
check "the user millrace cannot log in" is "$(in_box getent passwd millrace | cut -d: -f7)" /usr/sbin/nologin
check "/etc/millrace is for root and the group" mode /etc/millrace "750 root:millrace"
check "/etc/millrace/millrace.cnf is for root and the group" mode /etc/millrace/millrace.cnf "640 root:millrace"
check "/var/lib/millrace belongs to the user" mode /var/lib/millrace "750 millrace:millrace"
check "nobody else reads the configuration" not chroot --userspec=65534:65534 "$box" cat /etc/millrace/millrace.cnf
check "the unit is enabled" test -L "$box/etc/systemd/system/multi-user.target.wants/millrace.service"
check "policy-rc.d is obeyed: nothing was started" not in_box millrace health --live
for file in usr/share/man/man8/millrace.8.gz usr/share/bash-completion/completions/millrace \
  usr/share/zsh/vendor-completions/_millrace usr/share/fish/vendor_completions.d/millrace.fish \
  etc/logrotate.d/millrace usr/share/doc/millrace/copyright lib/systemd/system/millrace.service; do
  check "it brings /$file" test -s "$box/$file"
done
check "bash can read the completions" bash -n "$box/usr/share/bash-completion/completions/millrace"
check "files are as the package says" is "$(in_box dpkg --verify millrace)" ""
check "the configuration is taken as it is, without a warning" \
  is "$(in_box millrace --check 2>&1)" "/etc/millrace/millrace.cnf can be used: no warnings"

check "it starts with the packaged configuration as the user millrace" start
check "it is not ready before anybody can be served" not in_box millrace health
check "the operator comes in and makes a server and a user" ask 6032 admin "
  SET mysql-monitor_enabled = 'false'; LOAD MYSQL VARIABLES TO RUNTIME; SAVE MYSQL VARIABLES TO DISK;
  INSERT INTO mysql_servers (hostgroup_id, hostname, port) VALUES (0, '127.0.0.1', 6030);
  LOAD MYSQL SERVERS TO RUNTIME; SAVE MYSQL SERVERS TO DISK;
  INSERT INTO mysql_users (username, password, default_hostgroup) VALUES ('shop', 'shop', 0);
  LOAD MYSQL USERS TO RUNTIME; SAVE MYSQL USERS TO DISK"
check "the first query is answered" serves
check "it is ready now" in_box millrace health

echo '# An edit of the operator.' >> "$box/etc/millrace/millrace.cnf"
echo '# An edit of the operator.' >> "$box/etc/logrotate.d/millrace"
before=$(in_box sha256sum /etc/millrace/millrace.cnf /etc/logrotate.d/millrace)
check "a newer version installs while the old one serves" in_box dpkg -i --force-confold /tmp/newer.deb
check "it is the newer one" grep -q '\.1$' <<<"$(in_box dpkg-query -W -f '${Version}' millrace)"
check "files in /etc are as the operator left them" is "$(in_box sha256sum /etc/millrace/millrace.cnf /etc/logrotate.d/millrace)" "$before"
check "what the newer version brings lies beside a file that it would change" test -s "$box/etc/logrotate.d/millrace.dpkg-dist"
check "rights are as before" mode /etc/millrace/millrace.cnf "640 root:millrace"
check "the old one still serves: without systemd nobody restarts it" serves
check "SIGTERM ends it, with 0" stop
check "the newer one starts" start
check "it serves by what was saved, without a word" serves
check "it ends" stop

check "remove takes the package away" in_box dpkg --remove millrace
check "the binary is gone" test ! -e "$box/usr/bin/millrace"
check "the configuration stays" is "$(in_box sha256sum /etc/millrace/millrace.cnf /etc/logrotate.d/millrace)" "$before"
check "the data stays" test -s "$box/var/lib/millrace/proxysql.db"
check "it installs again over what was left" in_box dpkg -i --force-confold /tmp/newer.deb
check "it starts with the data of before" start
check "it serves" serves
check "it ends" stop
check "purge takes everything" in_box dpkg --purge millrace
for gone in /etc/millrace /var/lib/millrace /etc/logrotate.d/millrace /usr/share/doc/millrace \
  /etc/systemd/system/multi-user.target.wants/millrace.service /etc/systemd/system/millrace.service; do
  check "$gone is gone" test ! -e "$box$gone" -a ! -L "$box$gone"
done
check "the user stays, so that its number is nobody else's" in_box getent passwd millrace

# ---- The Debian package under a systemd, the first process of namespaces of its own.
live=$work/live
mkdir "$live"
tar -C "$live" -xpf "$cache/fresh-bookworm-systemd.tar"
cp "$box/tmp/first.deb" "$box/tmp/newer.deb" "$live/root/"
# For a first query without a server.
mkdir -p "$live/etc/systemd/system/millrace.service.d"
printf '[Service]\nExecStart=\nExecStart=/usr/bin/millrace -f -D /var/lib/millrace --sqlite3-server\n' \
  > "$live/etc/systemd/system/millrace.service.d/embedded.conf"
: > "$live/etc/machine-id"
unshare --mount --pid --uts --ipc --cgroup --fork --kill-child --propagation private -- sh -c '
  mount --bind "$1" "$1" && cd "$1" || exit 1
  mount -t proc proc proc
  mount -t sysfs sys sys
  mount -t tmpfs none sys/fs/cgroup
  mount -t cgroup2 none sys/fs/cgroup
  mount -t tmpfs none run
  mount -t tmpfs none dev
  for device in null zero full random urandom tty; do
    touch "dev/$device"
    mount --bind "/dev/$device" "dev/$device"
  done
  # PrivateDevices= looks for both.
  mkdir dev/pts
  mount -t devpts devpts dev/pts
  ln -s pts/ptmx dev/ptmx
  exec chroot . env -i container=dist-test PATH=/usr/sbin:/usr/bin:/sbin:/bin /lib/systemd/systemd --system --show-status=no
' sh "$live" >"$work/systemd.log" 2>&1 &
holder=$!
first=
within 30 eval 'first=$(cat /proc/$holder/task/$holder/children) && [ -n "$first" ]'
first=${first%% *}
in_live() { nsenter -t "$first" -m -p -u -i -C -r -w -- "$@"; }
unit() { in_live systemctl show millrace --property="$1" --value; }
runs() { is "$(in_live systemctl is-system-running 2>&1)" running; }
if within 60 runs >/dev/null 2>&1; then
  begun=$(date +%s%N)
  check "apt installs the package where systemd runs" in_live apt-get install -qq -y /root/first.deb
  check "systemd has started it, and was told that it is ready" is "$(unit Type) $(unit ActiveState) $(unit SubState)" "notify active running"
  check "it is the user's" is "$(in_live stat -c %U "/proc/$(unit MainPID)" 2>&1)" millrace
  check "the operator makes a server and a user" ask 6032 admin "
    SET mysql-monitor_enabled = 'false'; LOAD MYSQL VARIABLES TO RUNTIME; SAVE MYSQL VARIABLES TO DISK;
    INSERT INTO mysql_servers (hostgroup_id, hostname, port) VALUES (0, '127.0.0.1', 6030);
    LOAD MYSQL SERVERS TO RUNTIME; SAVE MYSQL SERVERS TO DISK;
    INSERT INTO mysql_users (username, password, default_hostgroup) VALUES ('shop', 'shop', 0);
    LOAD MYSQL USERS TO RUNTIME; SAVE MYSQL USERS TO DISK"
  check "the first query is answered" within 10 serves
  printf 'TOOK  %s ms from apt-get install to the first query\n' $((($(date +%s%N) - begun) / 1000000))
  check "no folder but its own can be written to" not in_live nsenter -t "$(unit MainPID)" -m -r -- touch /usr/left-behind
  check "a reload keeps it" in_live systemctl reload millrace
  check "it serves behind the reload" serves
  before=$(unit MainPID)
  check "kill -9 of all of it" in_live systemctl kill --signal=KILL millrace
  check "systemd begins it again, by what was saved" within 20 serves
  check "it is another process" not is "$(unit MainPID)" "$before"
  before=$(unit MainPID)
  check "a newer version installs" in_live dpkg -i /root/newer.deb
  check "the upgrade has begun the new one" within 20 serves
  check "it is another process again" not is "$(unit MainPID)" "$before"
  check "nothing was ended for its silence, and no start has failed" is "$(unit Result)" success
  check "remove stops it" in_live dpkg --remove millrace
  check "nobody serves any more" not serves
  check "purge leaves no unit that failed" eval 'in_live dpkg --purge millrace && [ -z "$(in_live systemctl --failed --no-legend)" ]'
else
  echo "SKIP  no systemd can run here: $(tail -n 1 "$work/systemd.log")"
fi
kill -KILL "$holder" 2>/dev/null
wait "$holder" 2>/dev/null

# ---- The RPM: unpacked into an empty folder; its scripts are for systems that have rpm.
package=$(ls "$out"/millrace-*.x86_64.rpm 2>/dev/null | head -n 1)
if [ -n "$package" ]; then
  mkdir "$work/rpm"
  check "the RPM installs its files" rpm --root "$work/rpm" --dbpath /rpmdb -i --nodeps --noscripts --nosignature "$package"
  check "its binary is the Debian package's" \
    is "$(sha256sum <"$work/rpm/usr/bin/millrace")" "$(dpkg-deb --fsys-tarfile "$out"/millrace_*_amd64.deb | tar -xO ./usr/bin/millrace | sha256sum)"
  check "its configuration is kept by upgrades" \
    is "$(rpm --dbpath "$work/none" -qp --nosignature --qf '[%{FILENAMES} %{FILEFLAGS:fflags} %{FILEGROUPNAME}\n]' "$package" | grep '^/etc/millrace/millrace.cnf ')" \
    "/etc/millrace/millrace.cnf cn millrace"
else
  echo "SKIP  there is no RPM in $out"
fi

# ---- The tarball, in the fresh Debian.
mkdir "$box/opt/here"
tar -C "$box/opt/here" -xzf "$(ls "$out"/millrace-*-linux-x86_64.tar.gz | head -n 1)" --strip-components=1
check "the tarball's binary runs" in_box /opt/here/bin/millrace --version
check "its configuration can be used" in_box /opt/here/bin/millrace --check -c /opt/here/etc/millrace.cnf
check "none of its links is dead" is "$(find "$box/opt/here" -xtype l)" ""

# ---- The root file system of the container, as the Containerfile says: user, command, question for its health.
image=$work/image
mkdir "$image"
tar -C "$image" -xpzf "$out/container/root.tar.gz"
in_image() { chroot --userspec=999:999 "$image" "$@"; }
check "there is no shell in the image" test ! -e "$image/bin/sh"
check "nothing in it may become root" is "$(find "$image" -perm /6000)" ""
env -i PATH="$PATH" chroot --userspec=999:999 "$image" /usr/bin/millrace -f -D /var/lib/millrace >"$work/image.log" 2>&1 &
container=$!
check "the image starts as nobody in particular" within 30 in_image /usr/bin/millrace health --live
check "it listens for clients of other machines" grep -q 'serves clients on 0.0.0.0:6033' "$work/image.log"
check "its health says why it is not ready" grep -q 503 <<<"$(in_image /usr/bin/millrace health 2>&1)"
check "SIGTERM ends it, with 0" eval "kill -TERM $container && wait $container"

[ "$failed" = 0 ] || tail -n 20 "$work/log" "$work/image.log"
printf '%s passed, %s failed\n' "$passed" "$failed"
[ "$failed" = 0 ]
