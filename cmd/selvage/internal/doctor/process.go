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

// fewFiles is how many connections and files a server can do with.
const fewFiles = 4096

func (e *Examination) processChecks() []check {
	return []check{
		{"Process", "account", e.account},
		{"Process", "open files", e.openFiles},
	}
}

// account looks at who the server is.
func (e *Examination) account(context.Context) []Finding {
	if !isDir(e.Config.Data) {
		return nil // there is no server yet
	}
	if uid := e.server(); uid != 0 {
		return []Finding{finef("%s", datadir.Account(uid))}
	}
	return []Finding{warnedf("make an account for it (useradd --system selvage), give it the data directory (chown -R), and run it as that",
		"the server is root, which it needs for nothing")}
}

func procOf(pid int) string { return "/proc/" + strconv.Itoa(pid) }

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// openFiles looks at how many files the server may have open, or would if it were
// started from here.
func (e *Examination) openFiles(context.Context) []Finding {
	const remedy = "LimitNOFILE=65536 in the unit, or `ulimit -n 65536` before the start"
	most, whose := uint64(0), "a server started from here"
	if most = limitOf(e.running.PID); e.alive && most > 0 {
		whose = "the running server"
	} else {
		var limit syscall.Rlimit
		if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
			return []Finding{skippedf("%v", err)}
		}
		most = uint64(limit.Max) // to which Go raises what holds
	}
	if most < fewFiles {
		return []Finding{warnedf(remedy, "%s may have %d open, and each connection is one", whose, most)}
	}
	return []Finding{finef("%s may have %d", whose, most)}
}

// limitOf returns how many files a process may have open, 0 if this system does not
// tell (proc(5), /proc/PID/limits).
func limitOf(pid int) uint64 {
	f, err := os.Open(procOf(pid) + "/limits")
	if err != nil {
		return 0
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if rest, ok := strings.CutPrefix(lines.Text(), "Max open files"); ok && len(strings.Fields(rest)) > 0 {
			n, _ := strconv.ParseUint(strings.Fields(rest)[0], 10, 64) // "unlimited" is none
			return n
		}
	}
	return 0
}
