package sip_test

import (
	"net"
	"strings"
	"testing"
)

// TestReconnectedPhone shows that a phone that reconnects during a call gets the requests of the call
// over its new connection. The server may not know yet that the former connection is dead.
func TestReconnectedPhone(t *testing.T) {
	for name, reconnect := range map[string]func(c conversation, former net.Conn){
		"after its former connection ended": func(c conversation, former net.Conn) {
			streams := func() int { return c.bob.server.Stats().Streams }
			eventually(c.bob.t, "the new connection", func() bool { return streams() == 2 })
			_ = former.Close()
			eventually(c.bob.t, "the former connection to end", func() bool { return streams() == 1 })
			c.bob.register()
		},
		"with the same contact": func(c conversation, former net.Conn) {
			r := c.bob.registration(600)
			at := func(text string) string {
				return strings.ReplaceAll(text, c.bob.conn.LocalAddr().String(), former.LocalAddr().String())
			}
			c.bob.send(at(c.bob.write(r, "")))
			c.bob.send(at(c.bob.write(r, c.bob.authorize(c.bob.expect("401"), r.method, r.uri, 1))))
			c.bob.expect("200")
		},
		"without registering again": func(c conversation, _ net.Conn) {
			c.bob.send(c.bob.write(c.bobRequests("OPTIONS"), ""))
			c.bob.expect("200")
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			c := converseOver(t, w.newPhone("alice"), w.newPhone("bob").overTCP())
			former := c.bob.conn
			c.bob.overTCP()
			reconnect(c, former)
			c.alice.send(c.alice.write(c.alice.inDialog("BYE", c.answered), ""))
			c.alice.expect("200")
			c.bob.respond(c.bob.expect("BYE"), "200 OK", "")
			w.isOver()
		})
	}
}
