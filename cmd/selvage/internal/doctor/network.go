package doctor

import (
	"context"
	"errors"
	"maps"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/selvage/selvage/cmd/selvage/internal/config"
	"github.com/selvage/selvage/cmd/selvage/internal/datadir"
)

func (e *Examination) networkChecks() []check {
	return []check{
		{"Listeners", "HTTP", e.listener("--listen", e.Config.Listen, e.running.HTTP, false)},
		{"Listeners", "HTTPS", e.listener("--listen-tls", e.Config.TLSAddress(), e.running.HTTPS,
			e.Config.ListenTLS == config.Auto && e.Config.LocalCertificate())},
		{"Listeners", "client certificates", e.listener("--listen-mtls", e.Config.ListenMTLS, e.running.MTLS, false)},
		{"Listeners", "operators", e.listener("--listen-ops", e.Config.ListenOps, e.running.Ops,
			e.From["listen_ops"] == "")},
		{"Server", "running", e.runningServer},
		{"Server", "public URL", e.publicURL},
		{"Server", "fabric host", e.fabricHost},
	}
}

// listener returns a check that the running server listens on address or, if no server is running, that
// the address is free. yields means that a server uses another port if the address is taken.
func (e *Examination) listener(
	flag string, address config.HostPort, running string, yields bool,
) func(context.Context) []Finding {
	return func(ctx context.Context) []Finding {
		switch {
		case address == config.Off:
			return []Finding{skippedf("off")}
		case e.alive && running != "":
			return []Finding{finef("%s, used by the running server", running)}
		case e.alive:
			return []Finding{skippedf("%s is opened at the next start", address)}
		}

		l, err := new(net.ListenConfig).Listen(ctx, "tcp", string(address))
		if errors.Is(err, syscall.EADDRINUSE) && yields {
			return []Finding{{
				Status: Warned,
				Found:  usedBy(address).and("(the server will use another port)"),
				Remedy: textf("set %s", flag),
			}}
		}
		if err != nil {
			return []Finding{unlistenable(address, flag, err)}
		}
		if err := l.Close(); err != nil {
			return []Finding{warnedf("closing %s: %s", address, err).withRemedy("run this command again")}
		}

		return []Finding{finef("%s is free", address)}
	}
}

// unlistenable returns the finding for an address on which a server cannot listen. flag is the flag that
// sets the address.
func unlistenable(address config.HostPort, flag string, err error) Finding {
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return Finding{
			Status: Broken,
			Found:  usedBy(address),
			Remedy: textf("stop it, or choose another address with %s", flag),
		}
	case errors.Is(err, syscall.EACCES):
		return brokenf("%s needs privileges", address).
			withRemedy(textf("choose a port of 1024 or above with %s, or give the binary CAP_NET_BIND_SERVICE", flag))
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return brokenf("%s is not an address of this machine", address).
			withRemedy(textf("choose another address with %s; `ip address` lists this machine's addresses", flag))
	}
	return brokenf("%s", err).withRemedy(textf("choose another address with %s", flag))
}

// findRunning returns the content of run.json, and whether a server is running in the directory. It
// tests the lock file, because the process ID in run.json may belong to another container.
func findRunning(dir string) (datadir.Running, bool) {
	r, _ := datadir.ReadRunning(dir)
	f, err := os.Open(filepath.Join(dir, datadir.LockFile))
	if err != nil {
		return r, false
	}
	defer f.Close() // also releases the lock, if this process got it
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_SH|syscall.LOCK_NB)
	return r, errors.Is(err, syscall.EWOULDBLOCK)
}

// runningServer checks that a server is running with this configuration and is ready.
func (e *Examination) runningServer(ctx context.Context) []Finding {
	switch {
	case !e.alive && e.running.PID != 0:
		return []Finding{warnedf("no server is running; the last one, process %s, was killed", e.running.PID).
			withRemedy("find out why with `journalctl -u selvage` and `dmesg | grep -i oom`; the next start " +
				"continues where it stopped")}
	case !e.alive:
		return []Finding{skippedf("no server is running in %s", e.Config.Data)}
	case e.running.PID == 0:
		return []Finding{warnedf("the server is starting or stopping").withRemedy("wait and run this command again")}
	}

	all := []Finding{finef("process %s at %s", e.running.PID, e.running.PublicURL)}
	if e.running.AuthURL != e.where.Auth || e.running.PublicURL != e.where.Public {
		differs := warnedf("the server runs as %s with issuer %s/, but this configuration has %s and %s",
			e.running.PublicURL, e.running.AuthURL, e.where.Public, e.where.Issuer()).
			withRemedy("run this command with the server's --config and variables, or restart the server")
		all = append(all, differs.of("configuration"))
	}

	if e.running.Ops == "" {
		return append(all, skippedf("the operators' listener is off").of("readiness"))
	}
	return append(all, e.ask(ctx)...)
}

// readiness is the response of /readyz.
type readiness struct {
	Status  string            `json:"status"`
	Checks  map[string]string `json:"checks"`
	Version string            `json:"version"`
}

// ask sends a request to /readyz and reports the dependencies that are not ready.
func (e *Examination) ask(ctx context.Context) []Finding {
	var answer readiness
	status, err := getJSON(ctx, plainClient(), e.running.Ops+"/readyz", &answer)
	if err != nil {
		return []Finding{brokenf("%s/readyz does not answer: %s", e.running.Ops, netCause(err)).
			withRemedy("check the server's log; if the server hangs, restart it").of("readiness")}
	}

	names := slices.Sorted(maps.Keys(answer.Checks))
	ready := finef("%s: %s", answer.Status, strings.Join(names, ", "))
	if status != http.StatusOK {
		ready = brokenf("%s: %s", answer.Status, answer.unwell()).
			withRemedy("see the findings about each of these; the server recovers automatically")
	}
	all := []Finding{ready.of("readiness")}
	if answer.Version != e.Version {
		all = append(all, warnedf("the server is version %s, this command is %s", answer.Version, e.Version).
			withRemedy("restart the server, or use its own binary").of("version"))
	}
	return all
}

// unwell lists the dependencies whose status is not ok.
func (r readiness) unwell() string {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(r.Checks)) {
		if !strings.HasPrefix(r.Checks[name], "ok") {
			all = append(all, name+": "+r.Checks[name])
		}
	}
	return strings.Join(all, "; ")
}
