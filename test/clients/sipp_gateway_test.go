package clients

import (
	"fmt"
	"maps"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/selvage/selvage/test/harness"
	telephone "github.com/selvage/selvage/test/phone"
)

const (
	gatewayPrefix = "+49"          // the server sends calls to these numbers to the gateway
	calledNumber  = "+4930987654"  // a number behind the gateway
	carrierUser   = "trunk-1"      // the account at the carrier
	carrierSecret = "secret-trunk" // the password of carrierUser
)

// gatewayServer starts a server that sends any number of calls to gateways on this machine.
func gatewayServer(t *testing.T) *harness.Server {
	t.Helper()
	return harness.StartConfig(t, harness.Config{
		Env: []string{
			"SELVAGE_EGRESS__ALLOW=127.0.0.1",
			"SELVAGE_LIMITS__OUTBOUND_CALLS=0",
			"SELVAGE_LIMITS__OUTBOUND_CALLS_PER_PROJECT=0",
			"SELVAGE_LIMITS__OUTBOUND_HOURLY=0",
			"SELVAGE_LIMITS__OUTBOUND_HOURLY_PER_PROJECT=0",
		},
		Args: []string{
			"--listen-sip", "127.0.0.1:0",
			"--phone-ports", "0",
			"--phone-digests", "MD5", // sipp supports no other digest
		},
	})
}

// newSIPGateway creates a gateway for gatewayPrefix, and returns a sipp in the role of the carrier
// behind it. Subscribers of the project may call through the gateway. more adds fields to those of
// the gateway.
func newSIPGateway(t *testing.T, p *harness.Project, more map[string]any) *sipPhone {
	t.Helper()
	carrier := newSIPP(t, p.Server, carrierUser, carrierSecret, sippUDP)
	fields := map[string]any{
		"name":       "Carrier",
		"uri":        "trunk@127.0.0.1:" + carrier.port,
		"username":   carrierUser,
		"password":   carrierSecret,
		"prefixes":   []string{gatewayPrefix},
		"codecs":     []string{"PCMU"},
		"ciphers":    []string{},
		"encryption": "optional",
	}
	maps.Copy(fields, more)

	p.Post(t, "/api/fabric/resources/sip_gateways", p.Basic(), harness.JSON(fields)).Want(t, 201)
	p.CLI(t, "", "project", "update", p.ID,
		"--outbound-calls", "on",
		"--outbound-prefix", gatewayPrefix)
	return carrier
}

// assignNumber makes calls to a phone number reach a resource.
func assignNumber(t *testing.T, p *harness.Project, number, resource string) {
	t.Helper()
	created := p.Post(t, "/api/fabric/phone_numbers", p.Basic(), harness.JSON(map[string]string{
		"number": number,
	})).Want(t, 201)
	routes := "/api/fabric/resources/" + resource + "/phone_routes"
	p.Post(t, routes, p.Basic(), harness.JSON(map[string]any{
		"phone_route_id": created.Object(t)["id"],
		"handler":        "calling",
	})).Want(t, 200)
}

// TestSIPGateways uses sipp as a carrier that calls a browser and is called by it. In both
// directions, each side hangs up at least once. The server recognizes one carrier by its address.
// With the other carrier, the server is registered.
func TestSIPGateways(t *testing.T) {
	harness.OneBackend(t)
	harness.Need(t, "sipp")
	s := gatewayServer(t)

	tests := []struct {
		name      string
		number    string // the browser's number
		fields    map[string]any
		registers bool // the server registers with the carrier
	}{
		{
			name:   "address",
			number: "+49305551231",
			fields: map[string]any{"ip_auth_enabled": true, "ip_auth": []string{"127.0.0.1"}},
		},
		{
			name:      "registration",
			number:    "+49305551232",
			fields:    map[string]any{"register": true},
			registers: true,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := s.NewProject(t)
			alice := p.NewSAT(t, "alice")
			assignNumber(t, p, tt.number, alice.SubscriberID)
			carrier := newSIPGateway(t, p, tt.fields)
			browser := telephone.Connect(t, s, alice.Token, "").G711().Online()
			if tt.registers {
				carrier.mustEnd(carrier.run("registrar.xml", ""))
				waitMetric(t, s, "selvage_sip_gateways", "1")
			}

			testIncoming(carrier, browser, tt.number)
			testOutgoing(carrier, browser)
		})
	}
}

// testIncoming calls the browser from the carrier three times. The carrier hangs up the first call.
// The browser hangs up the others. The INVITE of the last call has no offer, so the carrier answers
// the server's offer. sipp sends back the audio that it receives.
func testIncoming(carrier *sipPhone, browser *telephone.Phone, number string) {
	carrier.t.Helper()
	wait := carrier.run("carrier.xml", number)
	call := browser.WaitRing()
	call.Answer()
	if cause := call.WaitEnded(); cause != "NORMAL_CLEARING" {
		carrier.t.Errorf("the carrier's call ended with %s, want NORMAL_CLEARING", cause)
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

// testOutgoing calls the carrier from the browser twice. The carrier hangs up the first call. The
// browser hangs up the second.
func testOutgoing(carrier *sipPhone, browser *telephone.Phone) {
	carrier.t.Helper()
	wait := carrier.run("carrier-called.xml", "")
	call := browser.Dial(calledNumber)
	call.WaitAnswered()
	if cause := call.WaitEnded(); cause != "NORMAL_CLEARING" {
		carrier.t.Errorf("the call that the carrier hung up ended with %s, want NORMAL_CLEARING", cause)
	}
	carrier.mustEnd(wait)

	wait = carrier.run("uas", "")
	call = browser.Dial(calledNumber)
	call.WaitAnswered()
	telephone.Hear(call, call)
	call.Hangup()
	carrier.mustEnd(wait)
}

// TestSIPManyCalls makes 20 phones call through a gateway, hold, resume and hang up: 40 calls, or
// 1,000 with LONG=1. All calls succeed, and the server forgets each after its end.
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
	newDesk := func(user string) *sipPhone {
		return newSIPPhone(t, s, p, p.NewSAT(t, user).SubscriberID, user, sippUDP)
	}
	phones := newDesk("desk")
	for i := range 19 {
		phones.others = append(phones.others, newDesk(fmt.Sprintf("desk-%d", i)))
	}

	before := harness.CPU(s.PID())
	calls := []string{"-m", fmt.Sprint(count), "-timeout", "300s"}
	answered := carrier.run("uas", "", calls...)
	ended := phones.run("call.xml", calledNumber, append(calls, "-r", "10")...)
	phones.mustEnd(ended)
	carrier.mustEnd(answered)

	spent := harness.CPU(s.PID()) - before
	t.Logf("%d calls cost %v of CPU time each", count, spent/time.Duration(count))
	waitMetric(t, s, "selvage_sip_dialogs", "0")
}

// waitMetric waits until a metric without labels has this value.
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
