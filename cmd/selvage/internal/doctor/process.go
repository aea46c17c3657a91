package doctor

import (
	"bufio"
	"context"
	"os"
	"strconv"
	"strings"
	"syscall"

	"github.com/selvage/selvage/cmd/selvage/internal/datadir"
)

// minFiles is the minimum number of open files and connections that a server needs.
const minFiles = 4096

func (e *Examination) processChecks() []check {
	return []check{
		{"Process", "account", e.account},
		{"Process", "open files", e.openFiles},
	}
}

// account checks that the server does not run as root.
func (e *Examination) account(context.Context) []Finding {
	if !isDir(e.Config.Data) {
		return nil // no server has started yet
	}
	if uid := e.server(); uid != 0 {
		return []Finding{finef("%s", datadir.Account(uid))}
	}
	const remedy = "create an account (useradd --system selvage), make it the owner of the data directory " +
		"(chown -R), and run the server as that account"
	return []Finding{warnedf("the server runs as root, which it does not need").withRemedy(remedy)}
}

// procOf returns the directory of a process in /proc.
func procOf(pid int) string { return "/proc/" + strconv.Itoa(pid) }

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// openFiles checks the running server's limit on open files. If no server is running, it checks the
// limit that a server started by the current user would have.
func (e *Examination) openFiles(context.Context) []Finding {
	const remedy Text = "set LimitNOFILE=65536 in the unit, or run `ulimit -n 65536` before the start"
	limit := limitOf(e.running.PID)
	f := finef("the running server can open %s files", limit)
	if !e.alive || limit == 0 {
		var own syscall.Rlimit
		if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &own); err != nil {
			return []Finding{skippedf("%s", err)}
		}
		limit = uint64(own.Max) // Go raises the soft limit to this value at startup
		f = finef("a server started by this account can open %s files", limit)
	}

	if limit < minFiles {
		f.Status, f.Remedy = Warned, remedy
		f.Found = f.Found.and("(each connection counts as one)")
	}
	return []Finding{f}
}

// limitOf returns the number of files that a process may open. It returns 0 if the number is
// unknown (proc(5), /proc/PID/limits).
func limitOf(pid int) uint64 {
	f, err := os.Open(procOf(pid) + "/limits")
	if err != nil {
		return 0
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		rest, ok := strings.CutPrefix(lines.Text(), "Max open files")
		if limits := strings.Fields(rest); ok && len(limits) > 0 {
			n, _ := strconv.ParseUint(limits[0], 10, 64) // "unlimited" becomes 0
			return n
		}
	}
	return 0
}
