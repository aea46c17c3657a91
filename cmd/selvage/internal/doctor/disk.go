package doctor

import (
	"bufio"
	"context"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// These are amounts of free space, in bytes.
const (
	noSpace         = 32 << 20  // an error below
	veryLittleSpace = 256 << 20 // a warning below
	littleSpace     = 1 << 30   // a warning below, if it is also less than 5 % of the filesystem
)

// space checks the free bytes and inodes of the folder's filesystem.
func (f folder) space(context.Context) []Finding {
	var s syscall.Statfs_t
	if !isDir(f.path) {
		return nil
	}
	if err := syscall.Statfs(f.path, &s); err != nil {
		return []Finding{skippedf("the filesystem does not report its free space: %s", err)}
	}

	blockSize := uint64(s.Bsize)
	free := uint64(s.Bavail) * blockSize
	size := uint64(s.Blocks) * blockSize
	isLow := free < veryLittleSpace || (free < littleSpace && free < size/20)

	const remedy Text = "free some space, or move it to a larger disk; when the disk is full, the server " +
		"still serves reads but answers writes with 503"
	left := finef("%s of %s free", inUnits(free), inUnits(size))
	switch {
	case free < noSpace:
		left.Status = Broken
		left.Remedy = remedy
	case isLow:
		left.Status = Warned
		left.Remedy = remedy
	}
	findings := []Finding{left}

	freeInodes := uint64(s.Ffree)
	inodes := uint64(s.Files)
	if inodes > 0 && freeInodes < inodes/100 {
		few := warnedf("%s of %s inodes are free", freeInodes, inodes).
			withRemedy("remove unneeded files, or move it to another filesystem")
		findings = append(findings, few.of("inodes"))
	}
	return findings
}

// inUnits formats a number of bytes, such as 1.5 GiB.
func inUnits(n uint64) string {
	const units = "KMGTPE"
	if n < 1<<10 {
		return strconv.FormatUint(n, 10) + " B"
	}
	unit := -1
	value := float64(n)
	for value >= 1024 && unit < len(units)-1 {
		value /= 1024
		unit++
	}
	return strconv.FormatFloat(value, 'f', 1, 64) + " " + units[unit:unit+1] + "iB"
}

// sameDevice reports whether two folders are on the same device. It also returns true if one of them is
// missing, because another check reports that.
func sameDevice(a, b string) bool {
	infoA, err := os.Stat(a)
	if err != nil {
		return true
	}
	infoB, err := os.Stat(b)
	if err != nil {
		return true
	}
	return infoA.Sys().(*syscall.Stat_t).Dev == infoB.Sys().(*syscall.Stat_t).Dev
}

// These lists name filesystems that are not local disks.
var (
	networkKinds = []string{
		"9p",
		"afs",
		"ceph",
		"cifs",
		"fuse.ceph",
		"fuse.glusterfs",
		"fuse.rclone",
		"fuse.s3fs",
		"fuse.sshfs",
		"gpfs",
		"lustre",
		"nfs",
		"nfs4",
		"ocfs2",
		"smb3",
		"smbfs",
		"webdavfs",
	}
	memoryKinds = []string{"tmpfs", "ramfs"}
)

// filesystem warns if the folder is on a network, memory or container filesystem.
func (f folder) filesystem(context.Context) []Finding {
	if !isDir(f.path) {
		return nil
	}

	kind, mount := mountOf(f.path)
	switch {
	case kind == "":
		return []Finding{skippedf("not supported on this system")}
	case slices.Contains(networkKinds, kind):
		return []Finding{warnedf("%s, mounted at %s, is a network filesystem", kind, mount).
			withRemedy("use a local disk: SQLite's locks and syncs are not reliable over a network")}
	case slices.Contains(memoryKinds, kind):
		return []Finding{warnedf("%s, mounted at %s, is lost when the machine restarts", kind, mount).
			withRemedy("use a filesystem on disk")}
	case kind == "overlay":
		return []Finding{warnedf("it is in the container's own layer and is lost with the container").
			withRemedy(textf("mount a volume at %s", absolute(f.path)))}
	}

	return []Finding{finef("%s, mounted at %s", kind, mount)}
}

// mountOf returns the type and the mount point of the filesystem that holds path. It is the filesystem
// with the longest mount point that is path or a parent of it. If several filesystems are mounted there,
// it is the last one, which hides the others (proc(5), mountinfo).
func mountOf(path string) (kind, mount string) {
	path, err := filepath.EvalSymlinks(absolute(path))
	if err != nil {
		return "", ""
	}

	table, err := os.Open("/proc/self/mountinfo")
	if err != nil {
		return "", ""
	}
	defer table.Close()

	lines := bufio.NewScanner(table)
	for lines.Scan() {
		before, after, _ := strings.Cut(lines.Text(), " - ")
		fields, kinds := strings.Fields(before), strings.Fields(after)
		if len(fields) < 5 || len(kinds) == 0 {
			continue
		}
		point := unescapeOctal(fields[4])
		isParent := point == "/" || path == point || strings.HasPrefix(path, point+"/")
		if isParent && len(point) >= len(mount) {
			kind, mount = kinds[0], point
		}
	}
	return kind, mount
}

// unescapeOctal decodes the octal escapes of a mount point, such as \040 for a space.
func unescapeOctal(s string) string {
	return strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`).Replace(s)
}
