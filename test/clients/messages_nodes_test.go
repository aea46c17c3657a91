package clients

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/selvage/selvage/test/harness"
	"github.com/selvage/selvage/test/servers"
)

// TestMessagesBetweenNodes shows that three subscribers at two nodes can chat in a room. Ada uses
// the stock SDK 3.29.0, bob uses the stock SDK 4.0, and cyd uses our SDK. Each receives the others'
// messages live. After a restart of a node, each can read the whole history.
func TestMessagesBetweenNodes(t *testing.T) {
	if servers.BackendName(t) == "sqlite" {
		t.Skip("nodes cannot share files")
	}
	harness.NotStorage(t)
	n := harness.StartNodes(t, nil, make([]harness.Config, 2)...)
	p := n.NewProject(t)
	ada, bob, cyd := p.NewSubscriber(t), p.NewSubscriber(t), p.NewSubscriber(t)
	stock, four := inChromium(t, n.Server, "3.29.0"), inChromium(t, n.Server, "4.0.0-beta.12")
	p.Post(t, "/api/fabric/resources/conference_rooms", p.Basic(),
		harness.JSON(map[string]any{"name": "hall"})).Want(t, 201)
	token := visitor{p, ada}.token(t)
	var rooms struct{ Data []struct{ ID string } }
	n.Get(t, "/api/fabric/addresses?type=room", harness.Bearer(token)).Want(t, 200).Read(t, &rooms)
	room := rooms.Data[0].ID

	stock.open(token)
	stock.do(fmt.Sprintf("client.chat.join({ addressId: %q })", room), nil)
	stock.do("hear()", nil)
	n.Prefer(1)
	four.enterChat(visitor{p, bob}.token(t), room)
	ours := stock.openOurs(n.Each[1].HTTP, visitor{p, cyd}.token(t))
	ours.do(fmt.Sprintf("ours.messages.join(%q)", room), nil)
	wantSockets(t, n, 1, 2)

	byAda := fmt.Sprintf("client.conversation.sendMessage({ addressId: %q, text: ", room)
	byCyd := fmt.Sprintf("ours.messages.send(%q, ", room)
	stock.do(byAda+"'from 3.29.0' })", nil)
	four.wantTexts("from 3.29.0")
	ours.wantHeard("from 3.29.0")
	four.do("shown.sendText('from 4.0')", nil)
	stock.wantHeard("from 3.29.0", "from 4.0")
	ours.wantHeard("from 3.29.0", "from 4.0")
	ours.do(byCyd+"'from ours')", nil)
	stock.wantHeard("from 3.29.0", "from 4.0", "from ours")
	four.wantTexts("from 3.29.0", "from 4.0", "from ours")

	n.Each[1].Kill()
	stock.do(byAda+"'meanwhile' })", nil)
	n.Each[1].Restart(t)
	want := []string{"from 3.29.0", "from 4.0", "from ours", "meanwhile"}
	ours.wantHeard(want...) // our SDK reads what it missed
	four.reload(t)
	four.enterChat(visitor{p, bob}.token(t), room)
	four.wantTexts(want...)
	byPages := fmt.Sprintf("history(client.chat.getMessages({ addressId: %q, pageSize: 3 }))", room)
	stock.wantHistory(byPages, want...)
	ours.wantHistory(fmt.Sprintf("ours.messages.list(%q, 3).all()", room), want...)

	wantSockets(t, n, 1, 2)
	four.do("shown.sendText('back')", nil)
	want = append(want, "back")
	stock.wantHeard(want...)
	ours.wantHeard(want...)
	four.wantTexts(want...)

	// The SDK shows new messages of other conversations in the same list.
	stock.do(fmt.Sprintf("client.conversation.sendMessage({ addressId: %q, text: 'aside' })",
		p.Address(t, bob.ID)), nil)
	four.wantTexts(append(want, "aside")...)
}

// wantSockets waits until node i has want[i] authenticated sockets, for each i.
func wantSockets(t *testing.T, n *harness.Nodes, want ...int) {
	t.Helper()
	harness.Eventually(t, patience, "the sockets", func() error {
		for i, node := range n.Each {
			if got := metric(t, node, `selvage_relay_sockets{state="authenticated"}`); got != want[i] {
				return fmt.Errorf("node %d has %d sockets, want %d", i, got, want[i])
			}
		}
		return nil
	})
}

// wantHistory fails the test unless a promise resolves to messages with these texts, oldest first.
func (s sdk) wantHistory(promise string, texts ...string) {
	s.Helper()
	var messages []chatMessage
	s.do(promise, &messages)
	var got []string
	for _, m := range slices.Backward(messages) {
		got = append(got, m.Text)
	}
	if !slices.Equal(got, texts) {
		s.Errorf("with SDK %s, the history is %q, want %q", s.version, got, texts)
	}
}

// enterChat opens the messages of an address in version 4 of the stock SDK.
func (s sdk) enterChat(token, address string) {
	s.Helper()
	s.eval(s.T, fmt.Sprintf("begin(%q)", token), new(int))
	s.awaitFalse("!client.isConnected || !client.isRegistered")
	s.do(fmt.Sprintf("address(%q)", address), nil)
}

// wantTexts waits until the list of messages in version 4 of the stock SDK contains these messages,
// in any order.
func (s sdk) wantTexts(all ...string) {
	s.Helper()
	sorted := slices.Sorted(slices.Values(all))
	s.awaitFalse(fmt.Sprintf("texts() !== %q", strings.Join(sorted, "|")))
}
