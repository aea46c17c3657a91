package firefox

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/coder/websocket"
	"github.com/coder/websocket/wsjson"
)

// maxMessage is the maximum length of a message from Firefox.
const maxMessage = 16 << 20

// A session is a connection for WebDriver BiDi, which runs one command at a time.
type session struct {
	conn *websocket.Conn
	last int // the ID of the last command
}

// begin connects to a running Firefox, and begins a session.
func begin(address string) (*session, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	conn, _, err := websocket.Dial(ctx, address, nil)
	if err != nil {
		return nil, err
	}

	conn.SetReadLimit(maxMessage)
	s := &session{conn: conn}
	if err := s.call("session.new", map[string]any{"capabilities": struct{}{}}, nil); err != nil {
		_ = conn.CloseNow()
		return nil, err
	}
	return s, nil
}

// call runs a command and decodes its result, unless result is nil.
func (s *session) call(method string, params, result any) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	s.last++
	command := map[string]any{"id": s.last, "method": method, "params": params}
	if err := wsjson.Write(ctx, s.conn, command); err != nil {
		return fmt.Errorf("%s: %w", method, err)
	}

	for {
		var got struct {
			Type           string
			ID             int
			Result         json.RawMessage
			Error, Message string
		}
		err := wsjson.Read(ctx, s.conn, &got)
		switch {
		case err != nil:
			return fmt.Errorf("%s: %w", method, err)
		case got.ID != s.last: // an event
			continue
		case got.Type != "success":
			return fmt.Errorf("%s: %s: %s", method, got.Error, got.Message)
		case result == nil:
			return nil
		}
		return json.Unmarshal(got.Result, result)
	}
}
