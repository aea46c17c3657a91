package clients

import (
	"errors"
	"fmt"
	"testing"

	"github.com/selvage/selvage/test/harness"
)

// TestRoomSeen shows that an operator sees the members of a room, mutes, unmutes and removes one of
// them, and ends the session.
func TestRoomSeen(t *testing.T) {
	harness.NotStorage(t)
	alice, bob := phones(t, harness.StartConfig(t, harness.Config{}), "3.30.0")
	p, b := alice.project, alice.window.beside()
	b.do(goTo(p.CLI(t, "", "operator", "setup-link")["url"].(string)))
	b.fill("setup-submit", "username", "ann@example.com", "name", "Ann", "password", "a loom of one's own")
	home := "/dashboard/projects/" + p.ID
	b.arrive(home)

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
				return errors.New("the page does not have it")
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
