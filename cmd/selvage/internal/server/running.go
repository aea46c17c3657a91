package server

import (
	"net"
	"os"
	"strconv"

	"github.com/selvage/selvage/cmd/selvage/internal/config"
	"github.com/selvage/selvage/cmd/selvage/internal/datadir"
)

// running returns the addresses of the server, in the form that is written to run.json.
func (s *server) running() datadir.Running {
	r := datadir.Running{
		PID:       os.Getpid(),
		HTTP:      "http://" + s.ports.http.Addr().String(),
		PublicURL: s.app.Where.Public,
		AuthURL:   s.app.Where.Auth,
	}
	if s.ports.tls != nil {
		r.HTTPS = "https://" + s.ports.tls.Addr().String()
	}
	if s.ports.mtls != nil {
		r.MTLS = "https://" + s.ports.mtls.Addr().String()
	}
	if s.ports.ops != nil {
		r.Ops = "http://" + s.ports.ops.Addr().String()
	}
	if s.turn != nil {
		r.TURN = s.turn.URL()
	}

	if s.app.sip != nil {
		plain, secure := s.app.sip.Ports()
		r.SIP = withPort(s.app.Config.ListenSIP, plain)
		r.SIPS = withPort(s.app.Config.ListenSIPS, secure)
	}
	if s.app.engine != nil {
		host, _, _ := net.SplitHostPort(string(s.app.Config.MediaListener()))
		r.Media = net.JoinHostPort(host, strconv.Itoa(s.app.engine.Port()))
		r.Probe = s.app.engine.Probe()
	}
	return r
}

// withPort returns an address with the port that is in use, or "" if port is 0.
func withPort(address config.HostPort, port int) string {
	if port == 0 {
		return ""
	}
	host, _, _ := net.SplitHostPort(string(address))
	return net.JoinHostPort(host, strconv.Itoa(port))
}
