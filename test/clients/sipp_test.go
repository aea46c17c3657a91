package clients

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/selvage/selvage/test/harness"
	telephone "github.com/selvage/selvage/test/phone"
)

// Transports as values of sipp's option -t. Both use one socket for all calls.
const (
	sippUDP = "u1"
	sippTCP = "t1"
)

// A sipPhone is sipp in the role of a phone.
type sipPhone struct {
	t                    *testing.T
	server               string
	user, password, port string
	transport            string
	others               []*sipPhone // phones that take turns with this one in making calls
}

// newSIPPhone creates SIP credentials for a subscriber and returns a phone that uses them.
func newSIPPhone(t *testing.T, s *harness.Server, p *harness.Project, subscriber, user, transport string) *sipPhone {
	t.Helper()
	p.Post(t, "/api/fabric/resources/subscribers/"+subscriber+"/sip_endpoints", p.Basic(),
		harness.JSON(map[string]string{"username": user, "password": "secret-" + user})).Want(t, 201)
	return newSIPP(t, s, user, "secret-"+user, transport)
}

// newSIPP returns a phone that sends its messages to the server.
func newSIPP(t *testing.T, s *harness.Server, user, password, transport string) *sipPhone {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(s.Data, "run.json"))
	if err != nil {
		t.Fatal(err)
	}

	var running struct{ SIP string }
	if err := json.Unmarshal(text, &running); err != nil || running.SIP == "" {
		t.Fatalf("run.json is %s, want a member sip", text)
	}

	return &sipPhone{
		t:         t,
		server:    running.SIP,
		user:      user,
		password:  password,
		port:      fmt.Sprint(harness.FreePort(t)),
		transport: transport,
	}
}

// run starts sipp with a scenario, and returns a function that waits until sipp has ended.
func (p *sipPhone) run(scenario, to string, more ...string) (wait func() error) {
	p.t.Helper()
	dir := p.t.TempDir()
	values := filepath.Join(dir, "values.csv")
	lines := "SEQUENTIAL\n"
	for _, who := range append([]*sipPhone{p}, p.others...) {
		lines += fmt.Sprintf("%s;[authentication username=%s password=%s];%s;%s\n",
			who.user, who.user, who.password, to, who.password)
	}
	if err := os.WriteFile(values, []byte(lines), 0o600); err != nil {
		p.t.Fatal(err)
	}

	args := []string{p.server, "-i", "127.0.0.1", "-p", p.port, "-inf", values, "-m", "1", "-t", p.transport,
		"-auth_uri", strings.TrimPrefix(to+"@selvage.test", "@"),
		"-nostdin", "-timeout", "60s", "-timeout_error", "-trace_err", "-rtp_echo"}
	if strings.HasSuffix(scenario, ".xml") {
		path, err := filepath.Abs("sipp/" + scenario)
		if err != nil {
			p.t.Fatal(err)
		}
		args = append(args, "-sf", path)
	} else {
		args = append(args, "-sn", scenario)
	}

	cmd := exec.Command("sipp", append(args, more...)...)
	cmd.Dir = dir
	var out strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	p.t.Cleanup(func() { _ = cmd.Process.Kill() })

	return func() error {
		if err := <-ended; err != nil {
			errors, _ := filepath.Glob(filepath.Join(dir, "*_errors.log"))
			for _, name := range errors {
				text, _ := os.ReadFile(name)
				out.Write(text)
			}
			return fmt.Errorf("sipp with %s: %w\n%s", scenario, err, out.String())
		}
		return nil
	}
}

// TestSIPPhones makes sipp register, ring, call, hold, cancel and hang up, over UDP and TCP. The
// other side is a client of the relay, like a browser.
func TestSIPPhones(t *testing.T) {
	harness.OneBackend(t)
	harness.Need(t, "sipp")
	s := harness.Start(t, "--listen-sip", "127.0.0.1:0", "--phone-ports", "0",
		"--phone-digests", "MD5") // sipp supports no other digest, and reads only the first challenge
	for _, transport := range []string{sippUDP, sippTCP} {
		t.Run(transport, func(t *testing.T) {
			p := s.NewProject(t)
			alice, bob := p.NewSAT(t, "alice"), p.NewSAT(t, "bob")
			desk := newSIPPhone(t, s, p, bob.SubscriberID, "bob-"+transport, transport)
			browser := telephone.Connect(t, s, alice.Token, "").G711().Online()
			desk.mustEnd(desk.run("register.xml", ""))
			if transport == sippUDP { // over TCP, sipp closes its connection after it has registered
				callPhone(desk, browser)
			}
			callFromPhone(desk, browser)
			joinRoom(desk, browser, p)

			desk.password = "wrong"
			desk.mustEnd(desk.run("refused.xml", ""))
		})
	}
}

// mustEnd fails the test unless sipp ended its scenario as written.
func (p *sipPhone) mustEnd(wait func() error) {
	p.t.Helper()
	if err := wait(); err != nil {
		p.t.Fatal(err)
	}
}

// callPhone calls the phone from the browser. sipp sends back the audio that it receives.
func callPhone(desk *sipPhone, browser *telephone.Phone) {
	desk.t.Helper()
	wait := desk.run("uas", "")
	call := browser.Dial("/private/bob")
	call.WaitAnswered()
	telephone.Hear(call, call)
	call.Hangup()
	desk.mustEnd(wait)
}

// callFromPhone calls the browser from the phone, in several ways.
func callFromPhone(desk *sipPhone, browser *telephone.Phone) {
	desk.t.Helper()
	for _, tt := range []struct {
		scenario string
		hangUp   bool   // the browser hangs up, not the phone
		cause    string // cause that the browser gets
	}{
		{"call.xml", false, "NORMAL_CLEARING"}, {"call-ended.xml", true, ""},
		{"cancel.xml", false, "ORIGINATOR_CANCEL"},
	} {
		wait := desk.run(tt.scenario, "alice")
		call := browser.WaitRing()
		if tt.cause != "ORIGINATOR_CANCEL" {
			call.Answer()
			call.WaitAnswered()
		}

		if tt.hangUp {
			call.Hangup()
		}
		desk.mustEnd(wait)
		if tt.cause == "" {
			continue
		}
		if got := call.WaitEnded(); got != tt.cause {
			desk.t.Errorf("%s ended the call with %s, want %s", tt.scenario, got, tt.cause)
		}
	}
}

// joinRoom calls a room from the phone. sipp sends back the audio that it receives, so members who
// speak hear themselves through the phone.
func joinRoom(desk *sipPhone, browser *telephone.Phone, p *harness.Project) {
	desk.t.Helper()
	address, _ := createRoom(desk.t, p, "hall", nil)
	call := browser.Dial(address)
	call.WaitAnswered()
	call.Speak(440)
	call.WaitSound(false)
	wait := desk.run("call-ended.xml", "hall")
	call.WaitSound(true)
	call.Command("call.end", map[string]any{})
	desk.mustEnd(wait)
	call.WaitEnded()
}
