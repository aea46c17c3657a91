package clients

import (
	"fmt"
	"testing"

	"github.com/selvage/selvage/test/harness"
)

// TestCallUnanswered shows that an unanswered call ends by itself, and that both sides and the
// record of the call state the reason.
func TestCallUnanswered(t *testing.T) {
	harness.NotStorage(t)
	s := harness.StartConfig(t, harness.Config{Env: []string{"SELVAGE_CALLS__RING=2s"}})
	for _, version := range sdkVersions {
		t.Run(version, func(t *testing.T) {
			alice, bob := phones(t, s, version)
			alice.enter(false)
			bob.enter(true)
			alice.do(fmt.Sprintf("void (dialing = causeOf(%q))", bob.address()+"?channel=audio"), nil)
			bob.do("until(() => invites[0])", nil)
			alice.wantCause("NO_ANSWER")
			bob.wantBye("ORIGINATOR_CANCEL")
			alice.wantRecord("no-answer")
		})
	}
}

// wantBye waits until the server ends the phone's call, and checks the cause.
func (f *phone) wantBye(want string) {
	f.Helper()
	var cause string
	if f.do("message('verto.bye').then(m => m.params.cause)", &cause); cause != want {
		f.Errorf("the server ended the call with %q, want %s", cause, want)
	}
}

// wantRecord fails the test unless the newest call of the project has the given status.
func (f *phone) wantRecord(status string) {
	f.Helper()
	p := f.project
	var list struct{ Calls []struct{ Status string } }
	p.Get(f.T, p.LaML("/Calls.json"), p.Basic()).Want(f.T, 200).Read(f.T, &list)
	if len(list.Calls) == 0 || list.Calls[0].Status != status {
		f.Errorf("the calls have the statuses %v, want %s first", list.Calls, status)
	}
}

// callDevices shows that a call rings on each of the callee's devices. The first device that
// answers gets the call. The other device is notified that it was too late, and its own answer has
// no effect.
func callDevices(alice, bob *phone) {
	second := bob.beside(1500, "lime")
	alice.enter(false)
	bob.enter(true)
	second.enter(true)
	alice.do(fmt.Sprintf("void (dialing = dial(%q))", bob.address()+"?channel=audio"), nil)
	for _, f := range []*phone{bob, second} {
		f.do("until(() => invites[0])", nil)
	}

	second.do("accept(0)", nil)
	bob.wantBye("LOSE_RACE")
	alice.do("dialing", nil)
	hear(alice, second)
	bob.do("invites[0].accept({ audio: true, video: false }).then(follow)"+
		".then(() => until(() => states.includes('destroy')))", nil)
	hear(alice, second)
	alice.do("call.hangup()", nil)
	second.do("until(() => states.includes('destroy'))", nil)
}

// callGuest shows that a guest can call only the addresses in its token.
func callGuest(alice, bob *phone) {
	p := alice.project
	bob.enter(true)
	carol := p.NewSubscriber(alice.T)
	alice.enterWith(p.NewGuest(alice.T, p.Address(alice.T, bob.person.ID)).Token, false)
	for _, address := range []string{(&phone{sdk: alice.sdk, person: carol, project: p}).address(), "/private/nobody"} {
		alice.do(fmt.Sprintf("void (dialing = causeOf(%q))", address+"?channel=audio"), nil)
		alice.wantCause("CALL_REJECTED")
	}

	talk(alice, bob, false)
	hear(alice, bob)
	alice.do("call.hangup()", nil)
	bob.do("until(() => states.includes('destroy'))", nil)
}

// callRevoked shows that a call ends after one side's token is revoked, login ends or account is
// disabled. The other side receives the cause. TestEndCallElsewhere in test/nodes measures how long
// this takes.
func callRevoked(alice, bob *phone) {
	t, p := alice.T, alice.project
	wantEnd := func(what string, victim, other *phone) {
		t.Helper()
		harness.Eventually(t, patience, what, func() error {
			var cause string
			other.eval(t, "messages.find((m) => m.method === 'verto.bye')?.params.cause ?? ''", &cause)
			if cause != "TOKEN_REVOKED" {
				return fmt.Errorf("the call ended with %q, want TOKEN_REVOKED", cause)
			}
			return nil
		})
		victim.do("hear(0)", nil)
		other.do("until(() => states.includes('destroy'))", nil)
		alice.wantRecord("completed")
		alice.load()
		bob.load()
	}

	connect(alice, bob, false)
	hear(alice, bob)
	p.Command(t, alice.token, "token", "revoke")
	wantEnd("the call of a revoked token to end", alice, bob)

	tokens, _ := p.NewClient(t, "web", "--first-party", "--access-token", "fabric").SignIn(t, bob.person, "openid")
	bob.enterWith(tokens.AccessToken, true)
	alice.enter(false)
	talk(alice, bob, false)
	hear(alice, bob)
	sessions := "/api/fabric/resources/subscribers/" + bob.person.ID + "/sessions/"
	p.Do(t, "DELETE", sessions+tokens.SessionOf(t), p.Basic()).Want(t, 204)
	wantEnd("the call of an ended login to end", bob, alice)

	connect(alice, bob, false) // this comes last, because tokens issued in the next seconds would be refused
	hear(alice, bob)
	p.Command(t, "", "subscriber", "update", alice.person.ID, "--disabled")
	wantEnd("the call of a disabled account to end", alice, bob)
}
