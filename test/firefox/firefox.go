// Package firefox runs a headless Firefox for tests, and drives it with WebDriver BiDi
// (https://www.w3.org/TR/webdriver-bidi/).
package firefox

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/selvage/selvage/test/harness"
)

// Command is the Firefox command that the tests run, from Debian.
const Command = "firefox-esr"

// FakeTone is the frequency of Firefox's fake microphone in Hz.
const FakeTone = 700

// patience limits the time for the start, the end and each step of a Firefox. The pages of the
// tests settle their promises earlier.
const patience = 2 * time.Minute

// preferences make Firefox use fake devices without asking, play audio without a click, and work on
// a machine without speakers. They also stop most of its requests to the internet. Firefox itself
// stops more requests while it is driven.
var preferences = map[string]any{
	"app.normandy.enabled":                       false,
	"browser.safebrowsing.malware.enabled":       false,
	"browser.safebrowsing.phishing.enabled":      false,
	"browser.startup.page":                       0,
	"datareporting.policy.dataSubmissionEnabled": false,
	"media.autoplay.blocking_policy":             0,
	"media.autoplay.default":                     0,
	"media.cubeb.force_mock_context":             true,
	"media.gmp-manager.updateEnabled":            false,
	"media.navigator.audio.fake_frequency":       FakeTone,
	"media.navigator.permission.disabled":        true,
	"media.navigator.streams.fake":               true,
	"network.captive-portal-service.enabled":     false,
	"network.connectivity-service.enabled":       false,
	"services.settings.server":                   "data:,#remote-settings-dummy/v1",
	"toolkit.telemetry.server":                   "",
}

// A Browser is a running Firefox. Browsers and their tabs are not safe for concurrent use.
type Browser struct{ session *session }

// A Tab is a page of a Firefox.
type Tab struct {
	session *session
	context string
}

// NewProfile creates a profile in the directory for Firefox profiles below a home directory.
func NewProfile(t harness.T, home string) (dir string) {
	t.Helper()
	dir = filepath.Join(home, ".mozilla", "firefox", "test.default")
	var text strings.Builder
	for _, name := range slices.Sorted(maps.Keys(preferences)) {
		value, err := json.Marshal(preferences[name])
		if err != nil {
			t.Fatalf("encoding the preference %s: %v", name, err)
		}
		fmt.Fprintf(&text, "user_pref(%q, %s);\n", name, value)
	}

	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatalf("creating a profile: %v", err)
	}
	if err := os.WriteFile(filepath.Join(dir, "user.js"), []byte(text.String()), 0o600); err != nil {
		t.Fatalf("creating a profile: %v", err)
	}
	return dir
}

// Start starts a Firefox with a profile and an environment. The Firefox is stopped at the end of
// the test.
func Start(t harness.T, profile string, env []string) *Browser {
	t.Helper()
	log, err := os.Create(filepath.Join(profile, "printed.log"))
	if err != nil {
		t.Fatalf("starting Firefox: %v", err)
	}
	defer log.Close()
	cmd := exec.Command(Command, "--headless", "--no-remote", "--remote-debugging-port=0", "--profile", profile)
	cmd.Env, cmd.Stdout, cmd.Stderr = env, log, log
	if err := cmd.Start(); err != nil {
		t.Fatalf("starting Firefox: %v", err)
	}

	exited := make(chan struct{})
	go func() {
		_ = cmd.Wait() // the log shows why it exited
		close(exited)
	}()
	b := &Browser{}
	t.Cleanup(func() {
		b.stop(t, cmd, exited)
		if text, err := os.ReadFile(log.Name()); t.Failed() {
			t.Logf("Firefox printed (%v):\n%s", err, text)
		}
	})
	b.connect(t, profile, exited)
	return b
}

// connect waits until Firefox can be driven, and begins a session.
func (b *Browser) connect(t harness.T, profile string, exited <-chan struct{}) {
	t.Helper()
	harness.Eventually(t, patience, "Firefox to listen", func() error {
		select {
		case <-exited:
			t.Fatalf("Firefox ended during its start")
		default:
		}

		text, err := os.ReadFile(filepath.Join(profile, "WebDriverBiDiServer.json"))
		if err != nil {
			return err
		}
		var at struct {
			Host string `json:"ws_host"`
			Port int    `json:"ws_port"`
		}
		if err := json.Unmarshal(text, &at); err != nil {
			return err
		}
		b.session, err = begin(fmt.Sprintf("ws://%s:%d/session", at.Host, at.Port))
		return err
	})
}

// stop closes Firefox and waits until it has ended.
func (b *Browser) stop(t harness.T, cmd *exec.Cmd, exited <-chan struct{}) {
	t.Helper()
	if b.session == nil || b.session.call("browser.close", struct{}{}, nil) != nil {
		_ = cmd.Process.Kill() // fails if the process has already ended
	}
	select {
	case <-exited:
	case <-time.After(patience):
		_ = cmd.Process.Kill()
		<-exited
		t.Errorf("Firefox did not end within %v", patience)
	}
}

// NewTab opens an empty tab, which is closed at the end of the test.
func (b *Browser) NewTab(t harness.T) Tab {
	t.Helper()
	var made struct {
		Context string `json:"context"`
	}
	if err := b.session.call("browsingContext.create", map[string]any{"type": "tab"}, &made); err != nil {
		t.Fatalf("opening a tab: %v", err)
	}

	t.Cleanup(func() {
		if err := b.session.call("browsingContext.close", made, nil); err != nil {
			t.Errorf("closing a tab: %v", err)
		}
	})
	return Tab{b.session, made.Context}
}

// Open opens an address in the tab and waits until the page is complete.
func (tab Tab) Open(t harness.T, address string) {
	t.Helper()
	params := map[string]any{"context": tab.context, "url": address, "wait": "complete"}
	if err := tab.session.call("browsingContext.navigate", params, nil); err != nil {
		t.Fatalf("opening %s: %v", address, err)
	}
}

// Eval evaluates an expression in the tab, waits if the result is a promise, and decodes the JSON
// of the result into value.
func (tab Tab) Eval(t harness.T, expression string, value any) {
	t.Helper()
	params := map[string]any{
		"expression":   "(async () => JSON.stringify(await (" + expression + ")))()",
		"target":       map[string]any{"context": tab.context},
		"awaitPromise": true,
	}
	var answer struct {
		Result           struct{ Value string }
		ExceptionDetails struct{ Text string }
	}

	err := tab.session.call("script.evaluate", params, &answer)
	if err == nil && answer.ExceptionDetails.Text != "" {
		err = fmt.Errorf("the script threw %s", answer.ExceptionDetails.Text)
	}
	if err == nil {
		err = json.Unmarshal([]byte(answer.Result.Value), value)
	}
	if err != nil {
		t.Fatalf("%s: %v", expression, err)
	}
}
