package store

import (
	"encoding/json"
	"maps"
	"testing"
	"time"

	"github.com/selvage/selvage/idp"
	"github.com/selvage/selvage/internal/audit"
	"github.com/selvage/selvage/internal/page"
)

// TestClientEvents shows that the event of a changed client names every setting that has changed,
// and no other. An update without changes records no event.
func TestClientEvents(t *testing.T) { EachDatabase(t, testClientEvents) }

func testClientEvents(t *testing.T, c Config) {
	s, _, _ := grantRows(t, c)
	ctx := t.Context()
	made := newClient(t, s, idp.Metadata{JWKS: json.RawMessage(`{"keys":[]}`), BrandColor: "#000000"})

	for _, tt := range []struct {
		name   string
		change func(*idp.Client)
		want   map[string]string // the details of the event; nil for no event
	}{
		{name: "nothing", change: func(*idp.Client) {}},
		{
			name:   "the name",
			change: func(c *idp.Client) { c.Name = "Shop" },
			want:   map[string]string{"name": "Shop"},
		},
		{
			name:   "keys",
			change: func(c *idp.Client) { c.JWKS = json.RawMessage(`{"keys":[{"kty":"EC"}]}`) },
			want:   map[string]string{"changed": "jwks"},
		},
		{
			name: "removed keys",
			change: func(c *idp.Client) {
				c.JWKS = nil
				c.JWKSURI = "https://app.example/keys"
			},
			want: map[string]string{"changed": "jwks jwks_uri"},
		},
		{
			name: "tokens",
			change: func(c *idp.Client) {
				c.AccessToken = idp.JWTToken
				c.BackchannelLogoutURI = "https://app/out"
			},
			want: map[string]string{"changed": "access_token backchannel_logout_uri"},
		},
		{
			name:   "the color",
			change: func(c *idp.Client) { c.BrandColor = "" },
			want:   map[string]string{"brand_color": "none"},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			client, err := s.FindClient(ctx, made.ID)
			if err != nil {
				t.Fatal(err)
			}
			was := client
			tt.change(&client)
			client.Updated = was.Updated.Add(time.Second)
			before := clientEvents(t, s)
			if err := s.ReplaceClient(ctx, client, nil, was.Updated); err != nil {
				t.Fatal(err)
			}

			events := clientEvents(t, s)
			if tt.want == nil {
				if len(events) != len(before) {
					t.Errorf("got the event %v, want none", events[0].Detail)
				}
				return
			}
			if n := len(events) - len(before); n != 1 {
				t.Fatalf("got %d events, want 1", n)
			}
			if got := events[0].Detail; !maps.Equal(got, tt.want) {
				t.Errorf("got an event with %v, want %v", got, tt.want)
			}

			was.Updated = client.Updated.Add(time.Second) // so that the next case begins with the same settings
			if err := s.ReplaceClient(ctx, was, nil, client.Updated); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// clientEvents returns the events of changed clients, the newest first.
func clientEvents(t *testing.T, s *Store) []audit.Event {
	t.Helper()
	found, err := s.ListAudit(t.Context(), audit.Filter{Action: "client.updated"}, page.Query{Size: 50})
	if err != nil {
		t.Fatal(err)
	}
	return found.Items
}
