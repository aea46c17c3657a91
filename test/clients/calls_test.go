package clients

import (
	"fmt"
	"net/http"
	"path/filepath"
	"testing"

	"github.com/chromedp/cdproto/browser"
	"github.com/chromedp/chromedp"

	"github.com/selvage/selvage/test/harness"
)

// A phone is a subscriber with the stock SDK in a browser tab. It sends its own tone and color.
type phone struct {
	sdk
	window  tab // set only in Chromium
	person  harness.Subscriber
	project *harness.Project
	page    string
	hz      int
	color   string
	kept    bool   // the phone uses our SDK, so its calls continue when their server is lost
	token   string // set by enter
}

// phones opens a Chromium with a tab for each of two subscribers of a new project, alice and bob.
func phones(t *testing.T, s *harness.Server, version string) (alice, bob *phone) {
	t.Helper()
	return mixedPhones(t, s, version, version)
}

// mixedPhones is like phones, but takes a version of the SDK for each side.
func mixedPhones(t *testing.T, s *harness.Server, callers, callees string) (alice, bob *phone) {
	t.Helper()
	home := newHome(t)
	ca(t, s, home, "install", "--store", "chromium")
	first := callTab(t, home)

	p, page := s.NewProject(t), serveCalls(t, s, callers)
	alice = newTabPhone(t, p, first, callers, page, 440, "red")
	if callees != callers {
		page = serveCalls(t, s, callees)
	}
	bob = newTabPhone(t, p, first.beside(), callees, page, 1000, "blue")
	return alice, bob
}

// serveCalls serves the page of calls with a version of the SDK, and returns its address.
func serveCalls(t *testing.T, s *harness.Server, version string) (page string) {
	t.Helper()
	needNode(t)
	mux := http.NewServeMux()
	mux.Handle("GET /", http.FileServer(http.Dir("page")))
	mux.HandleFunc("GET /sdk-under-test.js", func(w http.ResponseWriter, r *http.Request) {
		http.ServeFile(w, r, filepath.Join("node_modules", "signalwire-"+version, "dist", "index.umd.js"))
	})
	mux.HandleFunc("GET /selvage.js", func(w http.ResponseWriter, r *http.Request) {
		http.ServeFile(w, r, filepath.Join("..", "..", "sdk", "dist", "selvage.js"))
	})
	return serveBeside(t, s.Issuer(), mux) + "/call.html"
}

// callTab returns the tab of a Chromium that may use its microphone and camera.
func callTab(t *testing.T, home string) tab {
	t.Helper()
	b := ownTab(t, chromedp.NoInheritEnv, chromedp.Env(plain(home)...),
		chromedp.Flag("use-fake-device-for-media-stream", true), chromedp.Flag("use-fake-ui-for-media-stream", true),
		chromedp.Flag("autoplay-policy", "no-user-gesture-required"),
		chromedp.Flag("disable-renderer-backgrounding", true))
	// Grant the permissions that a page has after it has used its microphone. Without them,
	// Chromium hides the machine's addresses.
	for _, device := range []string{"microphone", "camera"} {
		if _, err := chromedp.Call(b.ctx, browser.SetPermission, browser.SetPermissionParams{
			Permission: &browser.PermissionDescriptor{Name: device}, Setting: "granted"}); err != nil {
			t.Fatalf("granting the %s: %v", device, err)
		}
	}
	return b
}

// newTabPhone opens the phone of a new subscriber in a tab of Chromium.
func newTabPhone(t *testing.T, p *harness.Project, b tab, version, page string, hz int, color string) *phone {
	t.Helper()
	f := newPhone(t, p, b.sdk(version, page), page, hz, color)
	f.window = b
	return f
}

// newPhone loads the phone of a new subscriber.
func newPhone(t *testing.T, p *harness.Project, app sdk, page string, hz int, color string) *phone {
	t.Helper()
	f := &phone{sdk: app, person: p.NewSubscriber(t), project: p, page: page, hz: hz, color: color}
	f.load()
	return f
}

// use makes the phone report its failures to t.
func (f *phone) use(t *testing.T) { f.T, f.window.T = t, t }

// load opens or reloads the page, and sets the phone's tone and color.
func (f *phone) load() {
	f.Helper()
	f.reload(f.T)
	f.eval(f.T, fmt.Sprintf("wear(%d, %q)", f.hz, f.color), new(int))
}

// enter connects with a new token for its subscriber.
func (f *phone) enter(reachable bool) {
	f.Helper()
	f.enterWith(f.project.NewSAT(f.T, f.person.Email).Token, reachable)
}

// enterWith connects with a token.
func (f *phone) enterWith(token string, reachable bool) {
	f.Helper()
	f.token = token
	f.do(fmt.Sprintf("enter(%q, %v, %v)", token, reachable, f.kept), nil)
}

// beside returns another device of the same subscriber, in a new tab.
func (f *phone) beside(hz int, color string) *phone {
	f.Helper()
	other := newTabPhone(f.T, f.project, f.window.beside(), f.version, f.page, hz, color)
	other.person = f.person
	return other
}

// address returns the address at which the subscriber can be called.
func (f *phone) address() string {
	f.Helper()
	id := f.project.Address(f.T, f.person.ID)
	var a struct{ Name string }
	f.project.Get(f.T, "/api/fabric/addresses/"+id,
		harness.Bearer(f.project.NewSAT(f.T, f.person.Email).Token)).Want(f.T, 200).Read(f.T, &a)
	return "/private/" + a.Name
}

// journeys lists what two subscribers do with calls.
var journeys = []struct {
	name string
	walk func(alice, bob *phone)
}{
	{"echo", callEcho}, {"talk", callTalk}, {"reject", callReject}, {"cancel", callCancel},
	{"offline", callOffline}, {"mute", callMute}, {"hold", callHold}, {"upgrade", callUpgrade},
	{"screen", callScreen}, {"reload", callReload}, {"socket", callSocket}, {"record", callRecord},
	{"record always", callRecordAlways}, {"devices", callDevices}, {"guest", callGuest},
	{"revoked", callRevoked},
}

// TestCalls shows that subscribers can talk to each other with each version of the stock browser
// SDK.
func TestCalls(t *testing.T) {
	harness.NotStorage(t)
	s := harness.Shared(t)

	for _, version := range sdkVersions {
		t.Run(version, func(t *testing.T) {
			alice, bob := phones(t, s, version)
			for _, j := range journeys {
				walkAgain(t, j.name, alice, bob, j.walk)
			}
		})
	}
}

// walkAgain runs a journey as a subtest, after reloading both pages.
func walkAgain(t *testing.T, name string, alice, bob *phone, walk func(alice, bob *phone)) {
	t.Run(name, func(t *testing.T) {
		alice.use(t)
		bob.use(t)
		alice.load()
		bob.load()
		walk(alice, bob)
	})
}

// callEcho shows that a caller hears and sees itself at the echo address.
func callEcho(alice, _ *phone) {
	alice.enter(false)
	alice.do("dial('/public/echo')", nil)
	alice.do("hear(440)", nil)
	alice.do("call.hangup()", nil)
	alice.do("dial('/public/echo?channel=video', { video: true })", nil)
	alice.do("hear(440)", nil)
	alice.do("see('r')", nil)
	alice.do("call.hangup()", nil)
}

// connect connects both phones, makes alice call bob and bob answer, and returns the ID of the
// call.
func connect(alice, bob *phone, video bool) (id string) {
	alice.Helper()
	alice.enter(false)
	bob.enter(true)
	return talk(alice, bob, video)
}

// talk makes alice call bob and bob answer. Both must be connected to the server. It returns the ID
// of the call.
func talk(alice, bob *phone, video bool) (id string) {
	alice.Helper()
	channel := "audio"
	if video {
		channel = "video"
	}
	alice.do(fmt.Sprintf("void (dialing = dial(%q, { video: %v }))", bob.address()+"?channel="+channel, video), nil)
	bob.do(fmt.Sprintf("accept(0, { video: %v })", video), nil)
	alice.do("dialing", &id)
	return id
}

// has reports whether calls in this version of the SDK have a method.
func (f *phone) has(method string) (has bool) {
	f.Helper()
	f.enter(false)
	f.do("dial('/public/echo')", nil)
	f.eval(f.T, "Boolean(call."+method+")", &has)
	f.do("call.hangup()", nil)
	f.load()
	return has
}

// hear fails the test unless each phone hears the other.
func hear(alice, bob *phone) {
	alice.Helper()
	alice.do(fmt.Sprintf("hear(%d)", bob.hz), nil)
	bob.do(fmt.Sprintf("hear(%d)", alice.hz), nil)
}

// see fails the test unless each phone sees the other.
func see(alice, bob *phone) {
	alice.Helper()
	alice.do(fmt.Sprintf("see('%c')", bob.color[0]), nil)
	bob.do(fmt.Sprintf("see('%c')", alice.color[0]), nil)
}

// callTalk shows that two subscribers hear and see each other, and that a hangup by one ends the
// call for both.
func callTalk(alice, bob *phone) {
	connect(alice, bob, true)
	hear(alice, bob)
	see(alice, bob)
	bob.do("call.hangup()", nil)
	alice.do("until(() => states.includes('destroy'))", nil)

	alice.load()
	bob.load()
	connect(alice, bob, false)
	hear(alice, bob)
	alice.do("call.hangup()", nil)
	bob.do("until(() => states.includes('destroy'))", nil)
}

// callReject shows that a caller is notified when the callee rejects the call.
func callReject(alice, bob *phone) {
	alice.enter(false)
	bob.enter(true)
	alice.do(fmt.Sprintf("void (dialing = causeOf(%q))", bob.address()+"?channel=audio"), nil)
	bob.do("until(() => invites[0]).then(i => i.reject())", nil)
	alice.wantCause("USER_BUSY")
}

// wantCause fails the test unless the call that causeOf began ends with this cause.
func (f *phone) wantCause(want string) {
	f.Helper()
	var cause string
	if f.do("dialing", &cause); cause != want {
		f.Errorf("the call ended with %q, want %s", cause, want)
	}
}

// callCancel shows that a callee is notified when the caller gives up, and that answering too late
// has no effect.
func callCancel(alice, bob *phone) {
	alice.enter(false)
	bob.enter(true)
	alice.do(fmt.Sprintf("void (dialing = dial(%q))", bob.address()+"?channel=audio"), nil)
	bob.do("until(() => invites[0])", nil)
	alice.do("until(() => states.includes('ringing'))", nil)
	alice.do("call.hangup()", nil)
	bob.do("message('verto.bye')", nil)
	bob.do("invites[0].accept({ audio: true, video: false }).then(follow)"+
		".then(() => until(() => states.includes('destroy')))", nil)
}

// callOffline shows that a caller is notified when the callee is not online.
func callOffline(alice, bob *phone) {
	alice.enter(false)
	bob.enter(false)
	alice.do(fmt.Sprintf("void (dialing = causeOf(%q))", bob.address()+"?channel=audio"), nil)
	alice.wantCause("USER_NOT_REGISTERED")
}

// callMute shows that muting stops the microphone and notifies the other side, and that a deaf side
// hears nothing.
func callMute(alice, bob *phone) {
	connect(alice, bob, false)
	hear(alice, bob)
	for _, side := range [][2]*phone{{alice, bob}, {bob, alice}} {
		one, other := side[0], side[1]
		one.do("call.audioMute()", nil)
		one.do("until(() => microphone() === 0)", nil)
		other.do("hear(0)", nil)
		other.do("until(() => updates.some(m => m.audio_muted === true))", nil)
		one.do("call.audioUnmute()", nil)
		other.do(fmt.Sprintf("hear(%d)", one.hz), nil)
	}

	alice.do("call.deaf()", nil)
	alice.do("hear(0)", nil)
	alice.do("call.undeaf()", nil)
	alice.do(fmt.Sprintf("hear(%d)", bob.hz), nil)
	alice.do("call.sendDigits('12#')", nil)
	alice.do("call.hangup()", nil)
}

// callHold shows that neither side hears the other while the call is on hold.
func callHold(alice, bob *phone) {
	if !alice.has("hold") {
		return
	}
	connect(alice, bob, false)
	hear(alice, bob)
	alice.do("call.hold()", nil)
	alice.do("hear(0)", nil)
	bob.do("hear(0)", nil)
	alice.do("call.unhold()", nil)
	hear(alice, bob)
	alice.do("call.hangup()", nil)
}

// callUpgrade shows that video can be added to a running call, and removed again.
func callUpgrade(alice, bob *phone) {
	if !alice.has("updateMedia") {
		return
	}
	connect(alice, bob, false)
	hear(alice, bob)
	for _, f := range []*phone{alice, bob} {
		f.do("call.updateMedia({ audio: { direction: 'sendrecv' }, video: { direction: 'sendrecv' } })", nil)
	}
	see(alice, bob)
	alice.do("call.setVideoDirection('inactive')", nil)
	hear(alice, bob)
	alice.do("call.hangup()", nil)
}

// callScreen shows that a shared screen replaces the camera.
func callScreen(alice, bob *phone) {
	connect(alice, bob, true)
	bob.do("see('r')", nil)
	alice.do("call.startScreenShare({ audio: false, video: true }).then(s => { window.screen_ = s })", nil)
	bob.do("see('g')", nil)
	alice.do("screen_.leave ? screen_.leave() : screen_.hangup()", nil)
	bob.do("see('r')", nil)
	hear(alice, bob)
	alice.do("call.hangup()", nil)
}

// callReload shows that a call continues after a reload of the page. Version 3.27.0 of the SDK
// cannot continue calls, and keepCalls leaves a client of this version unchanged.
func callReload(alice, bob *phone) {
	if alice.version == "3.27.0" {
		alice.enter(false)
		var same bool
		if alice.eval(alice.T, "Selvage.keepCalls(client) === client", &same); !same {
			alice.Error("keepCalls changed a client that cannot continue calls")
		}
		return
	}

	connect(alice, bob, false)
	hear(alice, bob)
	var before, after string
	alice.eval(alice.T, "call.callId", &before)
	alice.load()
	alice.enter(false)
	alice.do(fmt.Sprintf("reattach(%q)", bob.address()), &after)
	if before != after {
		alice.Errorf("after the reload, the phone has the call %s, want %s", after, before)
	}

	hear(alice, bob)
	alice.do("call.hangup()", nil)
	bob.do("until(() => states.includes('destroy'))", nil)
}

// callSocket shows that a call continues while the WebSocket is down, and can be controlled again
// afterwards.
func callSocket(alice, bob *phone) {
	connect(alice, bob, false)
	hear(alice, bob)
	alice.do("sockets.at(-1).close(4999)", nil)
	alice.do("until(() => events.includes('session.reconnecting'))", nil)
	hear(alice, bob)
	alice.do("until(() => events.lastIndexOf('session.connected') > events.indexOf('session.reconnecting'))", nil)
	alice.do("call.audioMute()", nil)
	bob.do("hear(0)", nil)
	alice.do("call.hangup()", nil)
	bob.do("until(() => states.includes('destroy'))", nil)
}
