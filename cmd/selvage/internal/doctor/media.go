package doctor

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/selvage/selvage/calls/media"
	"github.com/selvage/selvage/calls/turn"
	"github.com/selvage/selvage/cmd/selvage/internal/config"
)

// callChecks implements the checks of calls: of the ports for media, TURN and phones, and of rtpengine
// and scripts.
type callChecks struct{ *Examination }

func (e callChecks) all() []check {
	return []check{
		{"Calls", "media port", e.mediaPort},
		{"Calls", "media addresses", e.mediaAddresses},
		{"Calls", "TURN", e.turn},
		{"Calls", "rtpengine", e.rtpengine},
		{"Calls", "scripts", e.scripts},
		{"Calls", "phones", e.phones},
		{"Calls", "phones by TLS", e.securePhones},
	}
}

// carriesCalls reports whether the server carries calls with this configuration. If it does not,
// why is the reason.
func (e callChecks) carriesCalls() (why Text, carries bool) {
	switch {
	case !e.Config.Services.Has(config.Relay):
		return textf("this server does not serve %s", config.Relay), false
	case e.Config.MediaListener() == config.Off:
		return textf("off: there are no calls"), false
	}
	return "", true
}

// mediaPort checks that the running server listens on the media port. If no server is running, it
// checks that the port is free for UDP and TCP.
func (e callChecks) mediaPort(ctx context.Context) []Finding {
	if why, carries := e.carriesCalls(); !carries {
		return []Finding{{Status: Skipped, Found: why}}
	}
	address := e.Config.MediaListener()
	switch {
	case e.alive && e.running.Media != "":
		return []Finding{finef("%s, used by the running server for UDP and TCP", e.running.Media)}
	case e.alive:
		return []Finding{skippedf("%s is opened at the next start", address)}
	}

	err := tryBoth(ctx, string(address))
	switch {
	case errors.Is(err, syscall.EADDRINUSE) && e.Config.ListenMedia == config.Auto:
		return []Finding{{Status: Fine, Found: usedBy(address).and("(the server will choose a free port)")}}
	case err != nil:
		return []Finding{unlistenable(address, "--listen-media", err)}
	}
	return []Finding{finef("%s is free for UDP and TCP", address)}
}

// tryBoth listens on an address over TCP and UDP, and closes both listeners.
func tryBoth(ctx context.Context, address string) error {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	if err != nil {
		return err
	}
	defer l.Close()
	p, err := new(net.ListenConfig).ListenPacket(ctx, "udp", address)
	if err != nil {
		return err
	}
	return p.Close()
}

// mediaAddresses checks whether browsers can reach the addresses to which they send media.
func (e callChecks) mediaAddresses(ctx context.Context) []Finding {
	if why, carries := e.carriesCalls(); !carries {
		return []Finding{{Status: Skipped, Found: why}}
	}
	local := (config.Where{Public: e.where.Public, Auth: e.where.Public}).Local()
	listener := e.Config.MediaListener()
	if listener.Loopback() && !local {
		return []Finding{warnedf("media is on %s, which only this machine reaches, but browsers come to %s",
			listener, e.where.Public).
			withRemedy("set --listen-media :8444 and open that port in the firewall for UDP and TCP, or " +
				"set it to off if nobody calls")}
	}

	all, elsewhere, err := e.Config.MediaAddresses(ctx, e.where.Public)
	switch {
	case err != nil:
		return []Finding{warnedf("%s", err).withRemedy("set --public-url")}
	case len(all) == 0 && len(elsewhere) > 0:
		const remedy = "set --media-address to the address at which browsers reach this machine, and " +
			"forward the media port to it unchanged"
		unreachable := warnedf("%s is %s, which this machine does not have; browsers get the addresses "+
			"of its interfaces", e.where.Public, list(elsewhere)).withRemedy(remedy)
		return []Finding{unreachable}
	case len(all) == 0:
		return []Finding{finef("browsers get the addresses of this machine's interfaces")}
	}

	if blocked := e.unreachable(ctx, all); len(blocked) > 0 {
		return blocked
	}
	port, known := e.mediaPortNumber()
	finding := finef("browsers get %s", list(all))
	if known {
		finding = finef("browsers get %s, where the running server answers by TCP and UDP", list(all))
	}
	if listener.Loopback() {
		finding.Found = finding.Found.and("(calls in Firefox need --listen-media :8444)")
	}
	if !known {
		return []Finding{finding}
	}
	call := e.testCall(ctx, netip.AddrPortFrom(all[0], port))
	return []Finding{finding, call.of("test call")}
}

// reachFor limits how long the running server may take to answer at an address.
const reachFor = time.Second

// callFor limits how long a test call may take.
const callFor = 4 * time.Second

// unreachable returns a finding for each transport by which some of the addresses cannot be
// reached.
func (e callChecks) unreachable(ctx context.Context, all []netip.Addr) (blocked []Finding) {
	port, known := e.mediaPortNumber()
	if !known {
		return nil
	}

	transports := []struct {
		name  string
		reach func(context.Context, netip.AddrPort) error
	}{
		{"TCP", connectTCP},
		{"UDP", e.reachUDP},
	}
	for _, transport := range transports {
		var silent []netip.Addr
		for _, ip := range all {
			ctx, cancel := context.WithTimeout(ctx, reachFor)
			if transport.reach(ctx, netip.AddrPortFrom(ip, port)) != nil {
				silent = append(silent, ip)
			}
			cancel()
		}
		if len(silent) > 0 {
			blocked = append(blocked, warnedf("the running server does not answer at %s by %s",
				list(silent), transport.name).
				withRemedy("open the media port in the firewall, or correct --media-address"))
		}
	}
	return blocked
}

// testCall calls the running server as a browser does, and describes the path of the audio.
func (e callChecks) testCall(ctx context.Context, address netip.AddrPort) Finding {
	ctx, cancel := context.WithTimeout(ctx, callFor)
	defer cancel()
	delay, err := media.TestCall(ctx, address, e.running.Probe)
	if err != nil {
		return brokenf("no audio by UDP to %s: %s", address, err).withRemedy("look for the cause in the server's log")
	}
	milliseconds := float64(delay.Microseconds()) / 1000
	return finef("by UDP to %s; its audio comes back after %s ms", address,
		strconv.FormatFloat(milliseconds, 'f', 1, 64))
}

// mediaPortNumber returns the number of the running server's media port.
func (e callChecks) mediaPortNumber() (port uint16, known bool) {
	if !e.alive {
		return 0, false
	}
	_, text, _ := net.SplitHostPort(e.running.Media)
	n, err := strconv.ParseUint(text, 10, 16)
	return uint16(n), err == nil
}

// connectTCP opens a connection and closes it.
func connectTCP(ctx context.Context, address netip.AddrPort) error {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", address.String())
	if err != nil {
		return err
	}
	return conn.Close()
}

// reachUDP sends STUN requests to the running server.
func (e callChecks) reachUDP(ctx context.Context, address netip.AddrPort) error {
	return media.Reach(ctx, address, e.running.Probe)
}

// turn checks that the TURN server responds at the URL that browsers use.
func (e callChecks) turn(ctx context.Context) []Finding {
	why, carries := e.carriesCalls()
	switch {
	case !carries:
		return []Finding{{Status: Skipped, Found: why}}
	case e.alive && e.running.TURN != "":
		return []Finding{e.runningTURN(ctx)}
	case e.Config.ListenTURN == config.Off:
		return []Finding{skippedf("off: browsers reach the media port directly, or not at all")}
	}
	return []Finding{skippedf("%s is opened at the next start", e.Config.ListenTURN)}
}

// runningTURN sends a request to the TURN server of the running server.
func (e callChecks) runningTURN(ctx context.Context) Finding {
	if err := turn.Reach(ctx, e.running.TURN, e.roots()); err != nil {
		return warnedf("%s does not answer: %s", e.running.TURN, err).
			withRemedy("forward its port to --listen-turn, or correct --turn-url; until then, browsers do not use it")
	}
	return finef("%s answers", e.running.TURN)
}

// list joins addresses with commas.
func list(all []netip.Addr) string {
	texts := make([]string, len(all))
	for i, ip := range all {
		texts[i] = ip.String()
	}
	return strings.Join(texts, ", ")
}
