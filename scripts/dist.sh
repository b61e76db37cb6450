#!/usr/bin/env bash
# Makes the packages of a release: a Debian package, an RPM, a tarball and a root file system for containers.
#
#   scripts/dist.sh [deb|rpm|tar|root]…     all of them by default; they land in $MILLRACE_DIST, else in dist/ beside
#                                           what cargo builds, with SHA256SUMS
#
# Beside them, millrace-VERSION.cdx.json says of what the binary is made.
#
# The binary is built once, for glibc 2.28 and with an OpenSSL of its own, if cargo-zigbuild is there (scripts/setup.sh dist
# installs it), else for this machine and with its OpenSSL. Depends and Requires are what the binary says of itself.
# Where the tree is does not get into the binary: paths are mapped, times are the commit's, and cargo builds in the cache.
#
#   MILLRACE_DIST_BIN=PATH      packs that binary and builds nothing
#   MILLRACE_DIST_PROFILE=PATH  builds by what a build that counts has written there (scripts/pgo.sh --profile); it stands beside
#                               the packages, since a second build is the same byte for byte with the same profile only
#   MILLRACE_DIST_NATIVE=1      builds for this machine even if cargo-zigbuild is there
#   MILLRACE_DIST_VERSION=1.2   the packages say that they are of that version (a test of upgrades)
set -euo pipefail
export LC_ALL=C TZ=UTC

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/.." && pwd -P)
. "$here/cache.sh"
cd "$root"
say() { printf 'dist: %s\n' "$*" >&2; }
die() { say "$*"; exit 1; }
glibc=2.28
triple=x86_64-unknown-linux-gnu

kinds=${*:-deb rpm tar root}
[ "$(uname -m)" = x86_64 ] || die "packages are made on x86_64 only"
target=$(realpath -m "${CARGO_TARGET_DIR:-$root/target}")
out=$(realpath -m "${MILLRACE_DIST:-$target/dist}")
version=${MILLRACE_DIST_VERSION:-$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -n 1)}
export SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || stat -c %Y Cargo.lock)}
zig="$(millrace_cache)/zig/bin"

built() { # builds, and says where the binary is
  # A folder of its own, since other flags would have everything built anew on each change of hands. It is the same for
  # every tree: OpenSSL writes where it was built, and how, into the binary, and no flag maps that.
  export CARGO_TARGET_DIR="$(millrace_cache)/for-dist"
  local cargo_home=${CARGO_HOME:-$HOME/.cargo} map
  map="--remap-path-prefix=$root=/millrace --remap-path-prefix=$CARGO_TARGET_DIR=/target --remap-path-prefix=$cargo_home=/cargo"
  map="$map --remap-path-prefix=$(rustc --print sysroot)=/rust"
  # At one place in every tree, since flags are a part of what is built.
  local profile=$CARGO_TARGET_DIR/millrace.profdata
  if [ -n "${MILLRACE_DIST_PROFILE:-}" ]; then
    install -D -m 644 "$MILLRACE_DIST_PROFILE" "$profile" || return 1
    map="$map -Cprofile-use=$profile"
  fi
  export RUSTFLAGS="$map"
  local c="-ffile-prefix-map=$CARGO_TARGET_DIR=/target -ffile-prefix-map=$cargo_home=/cargo"
  export CFLAGS="$c" CXXFLAGS="$c"
  if [ -x "$zig/cargo-zigbuild" ] && [ -z "${MILLRACE_DIST_NATIVE:-}" ]; then
    # A PCRE2 of its own as well: the library is not on every machine.
    PATH="$zig:$PATH" PCRE2_SYS_STATIC=1 TARGET_LIBS=-lunwind cargo zigbuild --locked --release --package millrace \
      --features own-openssl --target "$triple.$glibc" >&2 || return 1
    echo "$CARGO_TARGET_DIR/$triple/release/millrace"
  else
    say "cargo-zigbuild is not asked: the binary is for this machine's glibc and OpenSSL"
    cargo build --locked --release --package millrace >&2 || return 1
    echo "$CARGO_TARGET_DIR/release/millrace"
  fi
}

binary=${MILLRACE_DIST_BIN:-}
[ -n "$binary" ] || binary=$(built) || die "the binary was not built"
[ -x "$binary" ] || die "there is no binary at $binary"
needs_glibc=$(objdump -T "$binary" | sed -n 's/.*(\{0,1\}GLIBC_\([0-9.]*\).*/\1/p' | sort -uV | tail -n 1)
libraries=$(objdump -p "$binary" | sed -n 's/^ *NEEDED *//p' | sort)
say "$binary needs glibc $needs_glibc and $(echo $libraries)"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$out"
# Without the flags of the build: xtask is for this machine.
cargo run --quiet --package xtask -- sbom > "$work/sbom"
put() { # MODE FILE PLACE
  install -D -m "$1" "$2" "$3"
}
rm -f "$out"/*.cdx.json "$out"/*.profdata
[ -z "${MILLRACE_DIST_PROFILE:-}" ] || put 644 "$MILLRACE_DIST_PROFILE" "$out/millrace-$version.profdata"
put 644 "$work/sbom" "$out/millrace-$version.cdx.json"

# Everything that a package has, but for what its own kind wants: bin, etc, manual, completions, pages.
lay_out() {
  local tree=$1 doc=$1/usr/share/doc/millrace shell
  put 755 "$binary" "$tree/usr/bin/millrace"
  objcopy --strip-debug "$tree/usr/bin/millrace"
  put 640 etc/millrace.cnf "$tree/etc/millrace/millrace.cnf"
  put 644 etc/logrotate "$tree/etc/logrotate.d/millrace"
  install -d -m 750 "$tree/var/lib/millrace"
  for shell in man bash zsh fish; do
    "$binary" manual "$shell" > "$work/$shell"
  done
  put 644 "$work/man" "$tree/usr/share/man/man8/millrace.8"
  gzip -9n "$tree/usr/share/man/man8/millrace.8"
  put 644 "$work/bash" "$tree/usr/share/bash-completion/completions/millrace"
  put 644 "$work/zsh" "$tree/usr/share/zsh/vendor-completions/_millrace"
  put 644 "$work/fish" "$tree/usr/share/fish/vendor_completions.d/millrace.fish"
  put 644 README.md "$doc/README.md"
  put 644 CHANGELOG.md "$doc/CHANGELOG.md"
  put 644 LICENSE "$doc/LICENSE"
  put 644 docs/compatibility.md "$doc/compatibility.md"
  put 644 "$work/sbom" "$doc/millrace.cdx.json"
  local page
  for page in docs/features/*.md docs/admin/*.md; do
    put 644 "$page" "$doc/${page#docs/}"
  done
}

# Debian's names of the libraries, with the version of libc that the binary needs.
debian_needs() {
  local library needs="libc6 (>= $needs_glibc)"
  for library in $libraries; do
    case $library in
      libssl.so.3 | libcrypto.so.3) needs="$needs, libssl3 | libssl3t64" ;;
      libgcc_s.so.1) needs="$needs, libgcc-s1" ;;
      libpcre2-8.so.0) needs="$needs, libpcre2-8-0" ;;
      libzstd.so.1) needs="$needs, libzstd1" ;;
      libc.so.6 | libm.so.6 | libdl.so.2 | libpthread.so.0 | librt.so.1 | libutil.so.1 | ld-linux-x86-64.so.2) ;;
      *) die "which package of Debian has $library?" ;;
    esac
  done
  printf '%s' "$needs, adduser" | tr ',' '\n' | sed 's/^ *//' | awk '!seen[$0]++' | paste -sd, | sed 's/,/, /g'
}

deb() {
  local tree=$work/deb name
  lay_out "$tree"
  mv "$tree/usr/share/doc/millrace/LICENSE" "$work/license"
  put 644 etc/millrace.service "$tree/lib/systemd/system/millrace.service"
  put 644 etc/debian/copyright "$tree/usr/share/doc/millrace/copyright"
  gzip -9n "$tree/usr/share/doc/millrace/CHANGELOG.md"
  mv "$tree/usr/share/doc/millrace/CHANGELOG.md.gz" "$tree/usr/share/doc/millrace/changelog.gz"
  mkdir "$tree/DEBIAN"
  for name in postinst prerm postrm; do
    put 755 "etc/debian/$name" "$tree/DEBIAN/$name"
  done
  printf '/etc/logrotate.d/millrace\n/etc/millrace/millrace.cnf\n' > "$tree/DEBIAN/conffiles"
  cat > "$tree/DEBIAN/control" <<CONTROL
Package: millrace
Version: $version
Architecture: amd64
Maintainer: The Millrace authors <millrace@localhost>
Installed-Size: $(du -sk --exclude=DEBIAN "$tree" | cut -f1)
Depends: $(debian_needs)
Recommends: default-mysql-client | mysql-client | mariadb-client, logrotate
Section: database
Priority: optional
Description: SQL-aware proxy for MySQL
 Millrace stands between applications and servers of MySQL, MariaDB and their
 kin. It shares connections, routes, rewrites, refuses and measures every
 statement, and is administered over SQL while it serves.
CONTROL
  (cd "$tree" && find . -path ./DEBIAN -prune -o -type f -printf '%P\n' | sort | xargs md5sum) > "$work/md5sums"
  put 644 "$work/md5sums" "$tree/DEBIAN/md5sums"
  find "$tree" -newermt "@$SOURCE_DATE_EPOCH" -exec touch -hd "@$SOURCE_DATE_EPOCH" {} +
  dpkg-deb --root-owner-group --threads-max=1 -Zxz --build "$tree" "$out/millrace_${version}_amd64.deb" >&2
}

rpm() {
  command -v rpmbuild >/dev/null || { say "MISSING: rpmbuild, so there is no RPM (scripts/setup.sh dist)"; return 0; }
  lay_out "$work/rpm"
  put 644 etc/millrace.service "$work/rpm/usr/lib/systemd/system/millrace.service"
  mkdir -p "$work/rpmbuild"
  rpmbuild -bb --quiet --buildroot "$work/buildroot" \
    --define "_topdir $work/rpmbuild" --define "version $version" --define "tree $work/rpm" \
    --define "_buildhost millrace" --define "use_source_date_epoch_as_buildtime 1" \
    --define "clamp_mtime_to_source_date_epoch 1" --define "_docdir /usr/share/doc" --define "_binary_payload w6.xzdio" \
    etc/millrace.spec >&2
  cp "$work"/rpmbuild/RPMS/x86_64/*.rpm "$out/millrace-$version-1.x86_64.rpm"
}

# The same bytes for the same tree: names in order, one time, all of it root's but for what 999 is to own.
packed() { # FOLDER NAME FILE [NAME of 999's]
  local same=(--sort=name --numeric-owner --mtime="@$SOURCE_DATE_EPOCH" --format=gnu -C "$1")
  tar "${same[@]}" --owner=0 --group=0 ${4:+--exclude="$4"} -cf "$work/packed.tar" "$2"
  [ -z "${4:-}" ] || tar "${same[@]}" --owner=999 --group=999 -rf "$work/packed.tar" "$4"
  gzip -9n < "$work/packed.tar" > "$3"
}

tarball() {
  local name=millrace-$version-linux-x86_64 tree
  tree=$work/tar/$name
  lay_out "$work/laid"
  mkdir -p "$tree/etc" "$tree/share"
  mv "$work/laid/usr/bin" "$tree/bin"
  mv "$work/laid/etc/millrace/millrace.cnf" "$work/laid/etc/logrotate.d" "$tree/etc/"
  put 644 etc/millrace.service "$tree/etc/millrace.service"
  mv "$work"/laid/usr/share/* "$tree/share/"
  ln -s share/doc/millrace/README.md "$tree/README.md"
  ln -s share/doc/millrace/LICENSE "$tree/LICENSE"
  packed "$work/tar" "$name" "$out/$name.tar.gz"
}

# A root file system with the binary, the libraries that it names and nothing that could be logged in to.
root_fs() {
  local tree=$work/root library
  mkdir -p "$tree/etc" "$tree/tmp"
  put 755 "$binary" "$tree/usr/bin/millrace"
  objcopy --strip-debug "$tree/usr/bin/millrace"
  # As the linker finds them here; the linker itself is the one that the binary names.
  ldd "$binary" | sed -n 's/.*=> \(\/[^ ]*\).*/\1/p; s/^\s*\(\/lib64[^ ]*\).*/\1/p' | sort -u > "$work/libraries"
  while read -r library; do
    put 755 "$library" "$tree$library"
  done < "$work/libraries"
  put 644 etc/container/millrace.cnf "$tree/etc/millrace/millrace.cnf"
  echo 'millrace:x:999:999:Millrace:/var/lib/millrace:/usr/sbin/nologin' > "$tree/etc/passwd"
  echo 'millrace:x:999:' > "$tree/etc/group"
  echo 'hosts: files dns' > "$tree/etc/nsswitch.conf"
  [ ! -r /etc/ssl/certs/ca-certificates.crt ] ||
    put 644 /etc/ssl/certs/ca-certificates.crt "$tree/etc/ssl/certs/ca-certificates.crt"
  chmod 1777 "$tree/tmp"
  install -d -m 750 "$tree/var/lib/millrace"
  mkdir -p "$out/container"
  cp etc/container/Containerfile "$out/container/"
  # The folder of the data belongs to 999, the rest to root, whoever packs it.
  packed "$tree" . "$out/container/root.tar.gz" ./var/lib/millrace
}

# Nothing of an earlier version stays beside them.
rm -rf "$out/container"
rm -f "$out"/millrace_*.deb "$out"/millrace-*.rpm "$out"/millrace-*.tar.gz
for kind in $kinds; do
  case $kind in
    deb) deb ;;
    rpm) rpm ;;
    tar) tarball ;;
    root) root_fs ;;
    *) die "usage: dist.sh [deb|rpm|tar|root]…" ;;
  esac
done
cd "$out"
find . -type f ! -name SHA256SUMS -printf '%P\n' | sort | xargs sha256sum > SHA256SUMS
say "in $out:"
cat SHA256SUMS
