package fabric

import (
	"encoding/json"
	"time"

	"github.com/selvage/selvage/fabric/kinds"
)

// KindOf gives the kind of a resource. One of an operator's whose file is gone is
// of a kind that shows nothing of its own.
func (f *Fabric) KindOf(r Resource) *kinds.Kind {
	if k := f.c.Kinds.ByType(r.Type); k != nil {
		return k
	}
	return &kinds.Kind{Title: r.Type, Meta: kinds.Meta{Type: r.Type, Key: r.Type}}
}

// Document writes a resource among those of other kinds: what all have, and the
// members of its own under the key of its kind.
func Document(k *kinds.Kind, r Resource) json.RawMessage {
	own := []kinds.Member{text("id", r.ID)}
	if k.Flat {
		own = []kinds.Member{text("type", r.Type), text("id", r.ID)}
	}
	all := []kinds.Member{text("id", r.ID), text("project_id", r.ProjectID), text("display_name", r.DisplayName)}
	if k.EnvelopeName {
		all = append(all, text("name", r.DisplayName))
	}
	return kinds.Object(append(all, text("type", r.Type), text("created_at", moment(r.Created)), text("updated_at", moment(r.Updated)),
		kinds.Member{Name: k.Key, Value: k.Document(own, r.Fields)}))
}

// FlatDocument writes a resource with the members of its own at the top.
func FlatDocument(k *kinds.Kind, r Resource) json.RawMessage {
	return k.Document([]kinds.Member{text("type", r.Type), text("id", r.ID)}, r.Fields)
}

// text gives a member whose value is a string.
func text(name, value string) kinds.Member {
	raw, _ := json.Marshal(value) // a string always encodes
	return kinds.Member{Name: name, Value: raw}
}

// moment writes a time as the API does (RFC 3339, seconds, UTC).
func moment(t time.Time) string { return t.UTC().Format(time.RFC3339) }
