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

	for what, test := range map[string]struct {
		change func(*idp.Client)
		want   map[string]string // "name" is in every event
	}{
		"nothing":  {func(*idp.Client) {}, nil},
		"the name": {func(c *idp.Client) { c.Name = "Shop" }, map[string]string{"name": "Shop"}},
		"keys": {func(c *idp.Client) { c.JWKS = json.RawMessage(`{"keys":[{"kty":"EC"}]}`) },
			map[string]string{"changed": "jwks"}},
		"removed keys": {func(c *idp.Client) { c.JWKS, c.JWKSURI = nil, "https://app.example/keys" },
			map[string]string{"changed": "jwks jwks_uri"}},
		"tokens": {func(c *idp.Client) { c.AccessToken, c.BackchannelLogoutURI = idp.JWTToken, "https://app/out" },
			map[string]string{"changed": "access_token backchannel_logout_uri"}},
		"the color": {func(c *idp.Client) { c.BrandColor = "" }, map[string]string{"brand_color": "none"}},
	} {
		t.Run(what, func(t *testing.T) {
			client, err := s.FindClient(ctx, made.ID)
			if err != nil {
				t.Fatal(err)
			}
			was := client
			test.change(&client)
			client.Updated = was.Updated.Add(time.Second)
			before := clientEvents(t, s)
			if err := s.ReplaceClient(ctx, client, nil, was.Updated); err != nil {
				t.Fatal(err)
			}

			events := clientEvents(t, s)
			if test.want == nil {
				if len(events) != len(before) {
					t.Errorf("got the event %v, want none", events[0].Detail)
				}
				return
			}
			if client.Name != "" {
				test.want["name"] = client.Name
			}
			if len(events) != len(before)+1 || !maps.Equal(events[0].Detail, test.want) {
				t.Errorf("got %d events, the newest with %v, want %v", len(events)-len(before), events[0].Detail,
					test.want)
			}

			was.Updated = client.Updated.Add(time.Second) // the next test begins with the same settings
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
