package clients

import (
	"errors"
	"fmt"
	"testing"

	"github.com/selvage/selvage/test/harness"
)

// operatorBeside opens another tab, and signs the first operator in there. It returns the tab and
// the path of the project's home page.
func operatorBeside(alice *phone) (b tab, home string) {
	p := alice.project
	b = alice.window.beside()
	b.do(goTo(p.CLI(alice.T, "", "operator", "setup-link")["url"].(string)))
	b.fill("setup-submit", "username", "ann@example.com", "name", "Ann", "password", "a loom of one's own")
	home = "/dashboard/projects/" + p.ID
	b.arrive(home)
	return b, home
}

// TestRoomSeen shows that an operator sees the members of a room, mutes, unmutes and removes one of
// them, and ends the session.
func TestRoomSeen(t *testing.T) {
	harness.NotStorage(t)
	alice, bob := phones(t, harness.StartConfig(t, harness.Config{}), "3.30.0")
	p := alice.project
	b, home := operatorBeside(alice)

	enterRoom(newRoom(alice, "seen", nil)+"?channel=audio", false, alice, bob)
	hear(alice, bob)
	var member string
	bob.do("call.callId", &member)
	b.do(goTo(p.PublicURL + home + "/calls"))
	b.leave(`document.querySelector(".table a[href*='/rooms/']").click()`)
	at := home + "/rooms/" + openRoomSession(t, p)
	b.arrive(at)
	press := func(change string) {
		t.Helper()
		button := fmt.Sprintf(`document.querySelector("form[action$='/%s/%s'] button")`, member, change)
		harness.Eventually(t, patience, "the button to "+change, func() error {
			b.do(goTo(p.PublicURL + at))
			if !eval[bool](b, "Boolean("+button+")") {
				return errors.New("the page has no such button")
			}
			return nil
		})
		b.leave(button + ".click()")
	}

	press("mute")
	bob.do("until(() => microphone() === 0)", nil)
	alice.do("hear(0)", nil)
	press("unmute")
	alice.do(fmt.Sprintf("hear(%d)", bob.hz), nil)
	press("remove")
	bob.do("until(() => states.includes('destroy'))", nil)
	b.do(goTo(p.PublicURL + at))
	b.click("end-room")
	alice.do("until(() => states.includes('destroy'))", nil)
	b.do(goTo(p.PublicURL + at))
	b.until("the past members", "document.body.innerText.includes('Ended by a backend or an operator')")
}

// TestMoveSeen shows that an operator can move a call into a room and out of it. The page also
// shows why the call cannot move into a room that is too small.
func TestMoveSeen(t *testing.T) {
	harness.NotStorage(t)
	alice, bob := phones(t, harness.StartConfig(t, harness.Config{}), "3.30.0")
	newRoom(alice, "booth", map[string]any{"max_members": 1})
	newRoom(alice, "hall", nil)
	b, home := operatorBeside(alice)
	at := alice.project.PublicURL + home + "/calls/" + connect(alice, bob, false)
	hear(alice, bob)
	press := func(id, notice string) {
		t.Helper()
		b.click(id)
		b.until("the notice", fmt.Sprintf("document.body.innerText.includes(%q)", notice))
	}

	b.do(goTo(at))
	press("move", "no place for both sides")
	b.leave("document.getElementById('room').value = '/public/hall'")
	press("move", "Call moved into the room")
	alice.do("until(() => rooms.at(-1).name === '/public/hall' && rooms.at(-1).members.length === 2)", nil)
	hear(alice, bob)
	press("move-out", "Call moved out of the room")
	hear(alice, bob)
	bob.do("call.hangup()", nil)
	alice.do("until(() => states.includes('destroy'))", nil)
}
