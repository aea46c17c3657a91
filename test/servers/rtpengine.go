package servers

import (
	"fmt"
	"net"
	"strings"
	"syscall"
	"time"
)

// An RTPEngine is an rtpengine that runs in user space and uses only loopback.
type RTPEngine struct {
	Server
	Address string // address that accepts commands
}

// OwnRTPEngine starts an rtpengine that only this test uses.
func OwnRTPEngine(t T) *RTPEngine {
	t.Helper()
	r, err := startRTPEngine()
	check(t, err)
	t.Cleanup(func() { _ = r.kill() })
	return r
}

func startRTPEngine() (*RTPEngine, error) {
	path, err := program("rtpengine")
	if err != nil {
		return nil, err
	}
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	dir, err := newPlace("rtpengine", nil)
	if err != nil {
		return nil, err
	}

	address := fmt.Sprintf("127.0.0.1:%d", port)
	r := &RTPEngine{
		Address: address,
		Server: Server{
			Port:   port,
			dir:    dir,
			ending: syscall.SIGTERM,
			dying:  syscall.SIGKILL,
			ready:  func() error { return pingRTPEngine(address) },
			command: []string{path, "--config-file=none", "--table=-1", "--foreground", "--log-stderr",
				"--interface=external/127.0.0.1", "--interface=internal/127.0.0.2", "--listen-ng=" + address,
				"--port-min=50000", "--port-max=59999", "--num-threads=2"},
		},
	}
	return r, r.start()
}

// pingRTPEngine returns nil if an rtpengine answers at an address.
func pingRTPEngine(address string) error {
	conn, err := net.Dial("udp", address)
	if err != nil {
		return err
	}
	defer conn.Close()

	if err := conn.SetDeadline(time.Now().Add(time.Second)); err != nil {
		return err
	}
	if _, err := conn.Write([]byte("1 d7:command4:pinge")); err != nil {
		return err
	}

	reply := make([]byte, 100)
	n, err := conn.Read(reply)
	if err == nil && !strings.Contains(string(reply[:n]), "pong") {
		err = fmt.Errorf("rtpengine answered %q", reply[:n])
	}
	return err
}
