package clients

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/selvage/selvage/test/harness"
	telephone "github.com/selvage/selvage/test/phone"
)

// gatewayServer starts a server that sends calls to gateways on this machine, without limits on them.
func gatewayServer(t *testing.T) *harness.Server {
	t.Helper()
	env := []string{"SELVAGE_EGRESS__ALLOW=127.0.0.1"}
	for _, name := range []string{"", "_PER_PROJECT"} {
		env = append(env, "SELVAGE_LIMITS__OUTBOUND_CALLS"+name+"=0", "SELVAGE_LIMITS__OUTBOUND_HOURLY"+name+"=0")
	}
	return harness.StartConfig(t, harness.Config{Env: env,
		Args: []string{"--listen-sip", "127.0.0.1:0", "--phone-ports", "0", "--phone-digests", "MD5"}})
}

// newSIPGateway creates a gateway for all German numbers and returns a sipp in its role. more are members of
// the gateway. Subscribers of the project may call the numbers.
func newSIPGateway(t *testing.T, p *harness.Project, more map[string]any) *sipPhone {
	t.Helper()
	g := newSIPP(t, p.Server, "trunk-1", "secret-trunk", "u1")
	fields := map[string]any{
		"name":       "Carrier",
		"uri":        "trunk@127.0.0.1:" + g.port,
		"username":   g.user,
		"password":   g.password,
		"prefixes":   []string{"+49"},
		"codecs":     []string{"PCMU"},
		"ciphers":    []string{},
		"encryption": "optional",
	}
	for name, value := range more {
		fields[name] = value
	}

	p.Post(t, "/api/fabric/resources/sip_gateways", p.Basic(), harness.JSON(fields)).Want(t, 201)
	p.CLI(t, "", "project", "update", p.ID, "--outbound-calls", "on", "--outbound-prefix", "+49")
	return g
}

// assignNumber makes calls to a phone number reach a resource.
func assignNumber(t *testing.T, p *harness.Project, number, resource string) {
	t.Helper()
	made := p.Post(t, "/api/fabric/phone_numbers", p.Basic(), harness.JSON(map[string]string{"number": number}))
	p.Post(t, "/api/fabric/resources/"+resource+"/phone_routes", p.Basic(), harness.JSON(map[string]any{
		"phone_route_id": made.Want(t, 201).Object(t)["id"],
		"handler":        "calling",
	})).Want(t, 200)
}

// TestSIPGateways uses sipp as a carrier that calls a browser and is called by it. Each side hangs
// up once. The server recognizes one carrier by its address, and the other carrier by the server's
// registration there.
func TestSIPGateways(t *testing.T) {
	harness.OneBackend(t)
	harness.Need(t, "sipp")
	s := gatewayServer(t)
	for name, members := range map[string]map[string]any{
		"address":      {"ip_auth_enabled": true, "ip_auth": []string{"127.0.0.1"}},
		"registration": {"register": true},
	} {
		t.Run(name, func(t *testing.T) {
			p := s.NewProject(t)
			alice := p.NewSAT(t, "alice")
			number := "+4930555123" + fmt.Sprint(len(members))
			assignNumber(t, p, number, alice.SubscriberID)
			carrier := newSIPGateway(t, p, members)
			browser := telephone.Connect(t, s, alice.Token, "").G711().Online()
			if name == "registration" {
				carrier.mustEnd(carrier.run("registrar.xml", ""))
				waitMetric(t, s, "selvage_sip_gateways", "1")
			}
			carrierCalls(carrier, browser, number)
			callsCarrier(carrier, browser)
		})
	}
}

// carrierCalls calls the browser's number from the carrier, with and without an offer. sipp sends back
// the audio that it receives.
func carrierCalls(carrier *sipPhone, browser *telephone.Phone, number string) {
	carrier.t.Helper()
	wait := carrier.run("carrier.xml", number)
	call := browser.WaitRing()
	call.Answer()
	if cause := call.WaitEnded(); cause != "NORMAL_CLEARING" {
		carrier.t.Errorf("the carrier's call ends with %s, want NORMAL_CLEARING", cause)
	}
	carrier.mustEnd(wait)

	for _, scenario := range []string{"carrier-ended.xml", "carrier-late.xml"} {
		wait = carrier.run(scenario, number)
		call = browser.WaitRing()
		call.Answer()
		call.WaitAnswered()
		telephone.Hear(call, call)
		call.Hangup()
		carrier.mustEnd(wait)
	}
}

// callsCarrier calls numbers from the browser.
func callsCarrier(carrier *sipPhone, browser *telephone.Phone) {
	carrier.t.Helper()
	wait := carrier.run("carrier-called.xml", "")
	call := browser.Dial("+4930987654")
	call.WaitAnswered()
	if cause := call.WaitEnded(); cause != "NORMAL_CLEARING" {
		carrier.t.Errorf("the call ends with %s when the carrier hangs up, want NORMAL_CLEARING", cause)
	}
	carrier.mustEnd(wait)

	wait = carrier.run("uas", "")
	call = browser.Dial("+4930987654")
	call.WaitAnswered()
	telephone.Hear(call, call)
	call.Hangup()
	carrier.mustEnd(wait)
}

// TestSIPManyCalls makes 20 phones call through a gateway, hold, resume and hang up: 40 calls, or 1,000 with
// LONG=1. All succeed, and the server keeps none of them.
func TestSIPManyCalls(t *testing.T) {
	harness.OneBackend(t)
	harness.Need(t, "sipp")
	count := 40
	if os.Getenv("LONG") == "1" {
		count = 1000
	}
	s := gatewayServer(t)
	p := s.NewProject(t)
	carrier := newSIPGateway(t, p, nil)
	phones := newSIPPhone(t, s, p, p.NewSAT(t, "desk").SubscriberID, "desk", "u1")
	for i := range 19 {
		user := fmt.Sprintf("desk-%d", i)
		phones.others = append(phones.others, newSIPPhone(t, s, p, p.NewSAT(t, user).SubscriberID, user, "u1"))
	}

	total, before := fmt.Sprint(count), harness.CPU(s.PID())
	called := carrier.run("uas", "", "-m", total, "-timeout", "300s")
	phones.mustEnd(phones.run("call.xml", "+4930987654", "-m", total, "-r", "10", "-timeout", "300s"))
	carrier.mustEnd(called)
	t.Logf("%d calls cost %v of CPU time each", count, (harness.CPU(s.PID())-before)/time.Duration(count))
	waitMetric(t, s, "selvage_sip_dialogs", "0")
}

// waitMetric waits until a metric without labels has a value.
func waitMetric(t *testing.T, s *harness.Server, name, value string) {
	t.Helper()
	harness.Eventually(t, time.Minute, name+" to be "+value, func() error {
		text := string(s.Get(t, s.Ops+"/metrics").Want(t, 200).Body)
		if !strings.Contains(text, "\n"+name+" "+value+"\n") {
			return fmt.Errorf("the metric does not have this value yet")
		}
		return nil
	})
}
