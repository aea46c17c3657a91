package main

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/selvage/selvage/test/harness"
)

// serveFloor runs the cheapest server that net/http allows, the floor, and prints its address.
func serveFloor() {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench: listening:", err)
		os.Exit(1)
	}
	fmt.Println(l.Addr())
	srv := &http.Server{ReadHeaderTimeout: time.Minute, Handler: bareHandler()}
	fmt.Fprintln(os.Stderr, "bench:", srv.Serve(l))
}

// A bareServer is a running floor server.
type bareServer struct {
	cmd     *exec.Cmd
	address string
}

func startFloor(p *harness.Program, prefix []string) bareServer {
	self, err := os.Executable()
	if err != nil {
		p.Fatalf("%v", err)
	}
	args := append(append([]string{}, prefix...), self, "-floor")
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Env = append(os.Environ(), procs)

	out, err := cmd.StdoutPipe()
	if err != nil {
		p.Fatalf("%v", err)
	}
	if err := cmd.Start(); err != nil {
		p.Fatalf("starting the floor: %v", err)
	}

	s := bareServer{cmd: cmd}
	p.Cleanup(s.stop)

	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		p.Fatalf("starting the floor: %v", err)
	}
	s.address = strings.TrimSpace(line)
	return s
}

func (s bareServer) stop() {
	_ = s.cmd.Process.Kill()
	_ = s.cmd.Wait() // fails because the process was killed
}

func (s bareServer) operation(name, path string, connections int) operation {
	request := []byte("GET " + path + " HTTP/1.1\r\nHost: " + s.address + "\r\n\r\n")
	return operation{
		name:        name,
		address:     s.address,
		connections: connections,
		task:        func(int) task { return once(request, 200, "hello") },
	}
}
