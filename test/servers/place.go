package servers

import (
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"syscall"
)

// A place is the directory that holds the data of all servers that this process starts. However the
// process ends, the kernel then closes our end of a pipe, and a shell that reads from the pipe
// removes the directory. The shell tries again for ten seconds, because servers that are being
// killed may still write to the directory.
type place struct {
	dir  string
	open *os.File // our end of the pipe; must not be garbage-collected
}

var thePlace = sync.OnceValues(func() (*place, error) {
	dir, err := os.MkdirTemp("", "selvage-servers-")
	if err != nil {
		return nil, err
	}

	// The account that runs PostgreSQL must be able to traverse the directory.
	if err := os.Chmod(dir, 0o755); err != nil {
		return nil, err
	}

	held, end, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer held.Close()

	sweeper := exec.Command("/bin/sh", "-c",
		`read _; n=0; until rm -rf "$1" 2>/dev/null || [ $n = 100 ]; do n=$((n+1)); sleep 0.1; done`, "sh", dir)
	sweeper.Stdin = held
	// A signal that ends our process group must not end the sweeper.
	sweeper.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := sweeper.Start(); err != nil {
		return nil, fmt.Errorf("starting the shell that removes the data directory: %w", err)
	}
	return &place{dir: dir, open: end}, nil
})

// newPlace creates a subdirectory of the place. It belongs to account or, if account is nil, to our
// own account.
func newPlace(kind string, account *syscall.Credential) (string, error) {
	p, err := thePlace()
	if err != nil {
		return "", fmt.Errorf("creating the data directory of all servers: %w", err)
	}
	dir, err := os.MkdirTemp(p.dir, kind+"-")
	if err != nil {
		return "", fmt.Errorf("creating a data directory for %s: %w", kind, err)
	}

	if account != nil {
		if err := os.Chown(dir, int(account.Uid), int(account.Gid)); err != nil {
			return "", fmt.Errorf("changing the owner of a data directory: %w", err)
		}
	}
	return dir, nil
}

// FreePort returns a port of 127.0.0.1 on which nothing listens. The port stays reserved while this
// process lives: no other test gets it, and the kernel does not choose it for a connection.
// Therefore, a server can start on it late, and can stop and start again.
func FreePort(t T) int {
	t.Helper()
	port, err := freePort()
	check(t, err)
	return port
}

// claims keep other test processes from using this process's ports until this process ends. They
// are abstract Unix sockets, which exist only on Linux and have no file.
var (
	claimsMu sync.Mutex
	claims   []io.Closer
)

func freePort() (int, error) {
	var last error
	for range 100 {
		port := 10000 + rand.IntN(20000) // below Linux's ephemeral ports
		if runtime.GOOS == "linux" {
			claim, err := net.Listen("unix", fmt.Sprintf("@selvage-test-%d", port))
			if err != nil {
				last = err
				continue
			}
			claimsMu.Lock()
			claims = append(claims, claim)
			claimsMu.Unlock()
		}

		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err != nil {
			last = err
			continue
		}
		return port, l.Close()
	}
	return 0, fmt.Errorf("looking for a free port: %w", last)
}

// spawner returns a queue of functions that a single thread runs. The thread must live as long as
// this process, because Linux sends the parent-death signal when the thread that started the child
// ends.
var spawner = sync.OnceValue(func() chan<- func() {
	work := make(chan func())
	go func() {
		runtime.LockOSThread()
		for do := range work {
			do()
		}
	}()
	return work
})

// spawn starts a command that receives signal when this process ends.
func spawn(cmd *exec.Cmd, signal syscall.Signal) error {
	dieWithUs(cmd.SysProcAttr, signal)
	started := make(chan error)
	spawner() <- func() { started <- cmd.Start() }
	return <-started
}
