package sip_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/selvage/selvage/calls"
	"github.com/selvage/selvage/fabric"
)

// TestRegistrationsAreShared shows that gateways that do not respond do not keep the server from
// registering at other projects' gateways.
func TestRegistrationsAreShared(t *testing.T) {
	w := newWorld(t)
	silent := must[*net.UDPConn](t)(net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)}))
	t.Cleanup(func() { _ = silent.Close() })
	victim := w.project
	w.project = must[fabric.Project](t)(w.fabric.Projects.Create(t.Context(), "two")).ID
	for i := range 70 {
		w.newCarrier(map[string]json.RawMessage{
			"name":     quoted(fmt.Sprint("Silent ", i)),
			"register": json.RawMessage("true"),
			"uri":      quoted("trunk@" + silent.LocalAddr().String()),
		})
	}

	w.project = victim
	carrier, _ := w.newCarrier(map[string]json.RawMessage{"register": json.RawMessage("true")})
	if err := w.server.ReadGateways(t.Context()); err != nil {
		t.Fatal(err)
	}
	carrier.expect("REGISTER")
}

// damage damages the stored password of a gateway, so that the password cannot be opened.
func (w *world) damage(gateway string) {
	w.t.Helper()
	rows := w.store.Fabric().Resources
	r := must[fabric.Resource](w.t)(rows.FindResource(w.t.Context(), w.project, fabric.GatewayKind, gateway))
	old := r.Updated
	r.Secrets = "damaged"
	r.Updated = old.Add(time.Second)
	if err := rows.UpdateResource(w.t.Context(), r, old, nil); err != nil {
		w.t.Fatal(err)
	}
}

// TestForwardToDamagedGateway shows that a subscriber rings even if the calls are forwarded through a
// gateway whose password cannot be opened.
func TestForwardToDamagedGateway(t *testing.T) {
	w := newWorld(t)
	_, id := w.newCarrier(map[string]json.RawMessage{})
	w.damage(id)
	w.permit(fabric.OutboundOn, "+49")
	w.forwarding("bob", "+4930123456", "+4930123456", 5)
	bob, alice := w.registered("bob"), w.newPhone("alice")
	r := alice.calling("bob")
	bob.refuses(bob.expect("INVITE"), "486 Busy Here")
	alice.send(alice.acknowledge(r, alice.expect("486")))
	w.isOver()
	w.recordHas(func(r *calls.Record) { r.Refusal = "gateway_unreachable" })
}

// TestDamagedGateway shows that a gateway whose password cannot be opened does not keep the server
// from registering at other gateways. The damage is logged once. With a new password, the server
// registers at this gateway, too.
func TestDamagedGateway(t *testing.T) {
	w := newWorld(t)
	registers := map[string]json.RawMessage{"register": json.RawMessage("true")}
	broken, id := w.newCarrier(registers)
	w.damage(id)
	registers["name"] = quoted("Another carrier")
	carrier, _ := w.newCarrier(registers)
	for range 2 {
		if err := w.server.ReadGateways(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	carrier.expect("REGISTER")
	w.logs("gateway_id=" + id)
	w.log.mu.Lock()
	n := strings.Count(w.log.text.String(), "opening the password of a SIP gateway")
	w.log.mu.Unlock()
	if n != 1 {
		t.Errorf("the server has logged the damage %d times, want once", n)
	}

	w.changeGateway(id, map[string]json.RawMessage{"password": quoted("secret-again")})
	if err := w.server.ReadGateways(t.Context()); err != nil {
		t.Fatal(err)
	}
	broken.expect("REGISTER")
}

// requires expects a REGISTER that requests the given length. It answers that the length must be at
// least minimum.
func (p *phone) requires(length, minimum string) {
	p.t.Helper()
	p.reply(p.registers(length), "423 Interval Too Brief", "Min-Expires: "+minimum+"\r\n")
}

// registers returns the next REGISTER, which must request the given length.
func (p *phone) registers(length string) message {
	p.t.Helper()
	m := p.expect("REGISTER")
	if got := m.header("Expires"); len(got) != 1 || got[0] != length {
		p.t.Errorf("the REGISTER has the Expires headers %q, want %s", got, length)
	}
	return m
}

// TestLongerRegistration shows that the server registers for longer if a gateway requires this,
// even if the gateway later requires more. The server does so only once for each registration, and
// for at most a day.
func TestLongerRegistration(t *testing.T) {
	w := newWorld(t)
	carrier, _ := w.newCarrier(map[string]json.RawMessage{"register": json.RawMessage("true")})
	begin := func() {
		t.Helper()
		w.server.RenewRegistrations()
		if err := w.server.ReadGateways(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	begin()
	carrier.requires("300", "1800")
	carrier.reply(carrier.registers("1800"), "200 OK", "Expires: 1800\r\n")
	eventually(t, "the registration", func() bool { return w.server.Stats().Gateways == 1 })

	begin()
	carrier.requires("1800", "3600")
	carrier.requires("3600", "7200")
	w.logs("refuses the registration")
	eventually(t, "the failure to be noted", func() bool { return w.server.PendingRegistrations() == 0 })

	begin()
	carrier.requires("3600", "86401")
	eventually(t, "the failure to be noted", func() bool { return w.server.PendingRegistrations() == 0 })
	begin()
	carrier.registers("3600")
}

// TestSilentGatewaysHoldUpNothing shows that the server continues to read the list of gateways
// while it connects to gateways that do not respond.
func TestSilentGatewaysHoldUpNothing(t *testing.T) {
	w := newWorld(t)
	silent := must[net.Listener](t)(net.Listen("tcp", "127.0.0.1:0")) // accepts, but speaks no TLS
	t.Cleanup(func() { _ = silent.Close() })
	victim := w.project
	w.project = must[fabric.Project](t)(w.fabric.Projects.Create(t.Context(), "two")).ID
	for i := range 5 { // each handshake takes five seconds
		w.newCarrier(map[string]json.RawMessage{
			"name":      quoted(fmt.Sprint("Silent ", i)),
			"register":  json.RawMessage("true"),
			"transport": quoted("tls"),
			"uri":       quoted("trunk@" + silent.Addr().String()),
		})
	}

	w.project = victim
	carrier, _ := w.newCarrier(map[string]json.RawMessage{"register": json.RawMessage("true")})
	read := make(chan error, 1)
	go func() { read <- w.server.ReadGateways(t.Context()) }()
	carrier.expect("REGISTER")
	if err := <-read; err != nil {
		t.Error(err)
	}
}

// TestLostRegistration shows that the server registers again soon after a gateway has closed the
// connection of the registration, over which it sends calls.
func TestLostRegistration(t *testing.T) {
	w := newWorld(t)
	carrier := must[net.Listener](t)(net.Listen("tcp", "127.0.0.1:0"))
	t.Cleanup(func() { _ = carrier.Close() })
	w.newCarrier(map[string]json.RawMessage{
		"register":  json.RawMessage("true"),
		"transport": quoted("tcp"),
		"uri":       quoted("trunk@" + carrier.Addr().String()),
	})
	if err := w.server.ReadGateways(t.Context()); err != nil {
		t.Fatal(err)
	}
	trunk := w.newPhone("carrier")
	trunk.conn = must[net.Conn](t)(carrier.Accept())
	trunk.reply(trunk.expect("REGISTER"), "200 OK", "Expires: 600\r\n")
	eventually(t, "the registration", func() bool { return w.server.Stats().Gateways == 1 })
	if left := time.Until(w.server.NextRegistration()); left < 4*time.Minute {
		t.Errorf("the server registers again in %s, want about 5m", left)
	}
	_ = trunk.conn.Close()
	eventually(t, "the registration to be due in a minute", func() bool {
		return time.Until(w.server.NextRegistration()) <= time.Minute
	})
}

// TestTrunksByName shows that gateways with different host names at the same address have a
// connection each. Their calls do not open further connections.
func TestTrunksByName(t *testing.T) {
	w := newWorld(t)
	carrier := must[net.Listener](t)(net.Listen("tcp", "127.0.0.1:0"))
	t.Cleanup(func() { _ = carrier.Close() })
	opened, invited := make(chan net.Conn, 10), make(chan string, 10)
	passInvites := func(conn net.Conn) {
		for lines := bufio.NewScanner(conn); lines.Scan(); {
			if strings.HasPrefix(lines.Text(), "INVITE ") {
				invited <- lines.Text()
			}
		}
	}
	go func() {
		for {
			conn, err := carrier.Accept()
			if err != nil {
				return // the test has ended
			}
			opened <- conn
			go passInvites(conn)
		}
	}()

	_, port, _ := net.SplitHostPort(carrier.Addr().String())
	for prefix, host := range map[string]string{"+49": "127.0.0.1", "+1": "localhost"} {
		w.newCarrier(map[string]json.RawMessage{
			"name":      quoted("At " + host),
			"transport": quoted("tcp"),
			"uri":       quoted("trunk@" + host + ":" + port),
			"prefixes":  json.RawMessage(`["` + prefix + `"]`),
		})
	}

	w.permit(fabric.OutboundOn, "+49 +1")
	for i, number := range []string{"+4930123456", "+12125550100", "+4930123456", "+12125550100"} {
		w.subscriber(fmt.Sprint("caller", i))
		w.newPhone(fmt.Sprint("caller", i)).dial(number)
		if got := <-invited; !strings.Contains(got, number) {
			t.Errorf("the gateway got %q, want an INVITE to %s", got, number)
		}
	}

	if n := len(opened); n != 2 {
		t.Errorf("calls through two gateways opened %d connections, want 2", n)
	}
	for range len(opened) {
		_ = (<-opened).Close()
	}
}
