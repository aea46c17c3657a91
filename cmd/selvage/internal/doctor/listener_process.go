package doctor

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/selvage/selvage/cmd/selvage/internal/config"
)

// usedBy names the process that listens on an address, as far as the current user can see it.
func usedBy(address config.HostPort) Text {
	_, text, _ := net.SplitHostPort(string(address))
	port, err := strconv.Atoi(text) // also fails if the address has no port
	if err != nil {
		return textf("%s is used by another program", address)
	}
	for _, table := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		for _, inode := range listeningOn(table, port) {
			if pid := processWith(inode); pid != "" {
				name, _ := os.ReadFile("/proc/" + pid + "/comm") // the process may have ended
				return textf("%s is used by process %s", address, strings.TrimSpace(pid+" "+string(name)))
			}
		}
	}
	return textf("%s is used by a program of another account (`ss -ltnp` as root shows which)", address)
}

// listeningOn returns the inodes of the sockets in a table that listen on a port. The format of the
// tables is described in proc(5), under /proc/net/tcp.
func listeningOn(table string, port int) (inodes []string) {
	f, err := os.Open(table)
	if err != nil {
		return nil
	}
	defer f.Close()
	const listening = "0A"
	suffix := fmt.Sprintf(":%04X", port)
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		if len(fields) < 10 {
			continue
		}
		address, state, inode := fields[1], fields[3], fields[9]
		if state == listening && strings.HasSuffix(address, suffix) {
			inodes = append(inodes, inode)
		}
	}
	return inodes
}

// processWith returns the ID of a process that has the socket with this inode open, or "" if it finds
// none.
func processWith(inode string) string {
	links, err := filepath.Glob("/proc/[0-9]*/fd/*")
	if err != nil {
		return ""
	}
	for _, link := range links {
		target, err := os.Readlink(link)
		if err == nil && target == "socket:["+inode+"]" {
			return strings.Split(link, "/")[2]
		}
	}
	return ""
}
