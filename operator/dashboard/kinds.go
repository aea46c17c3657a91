package dashboard

import (
	"net/http"

	"github.com/selvage/selvage/fabric/kinds"
	"github.com/selvage/selvage/internal/words"
	"github.com/selvage/selvage/operator"
)

// kindPages serves the pages that show owners the kinds of resources and the members of each kind.
type kindPages struct{ *site }

// A kindRow is one kind of resource.
type kindRow struct {
	*kinds.Kind
	API     string // the path of the kind's routes
	Has     string // describes the channels of its addresses
	Members []kindMember
	BuiltIn bool
}

// A kindMember is one member of a kind.
type kindMember struct {
	kinds.Field
	About string // the member's type, and whether it is required
}

// listKinds serves GET /dashboard/kinds.
func (a *kindPages) listKinds(v *visit) error {
	var all []kindRow
	for _, k := range a.Fabric.Resources.Kinds().All() {
		row := kindRow{Kind: k, API: "/api/fabric/resources/" + k.Path, Has: v.describeChannels(k.Channels),
			BuiltIn: kinds.Builtin().ByType(k.Type) != nil}
		for _, f := range k.Fields {
			about := f.Type
			switch {
			case f.Required:
				about = words.Textf("%s, required", about)
			case f.ReadOnly:
				about = words.Textf("%s, read-only", about)
			case f.WriteOnly:
				about = words.Textf("%s, secret", about)
			}
			row.Members = append(row.Members, kindMember{f, about})
		}
		all = append(all, row)
	}
	return a.page(v, http.StatusOK, "Kinds", "kinds", all)
}

func (a *kindPages) routes() []route {
	return []route{{pattern: "GET /dashboard/kinds", may: operator.KeepOperators, serve: a.listKinds,
		nav: "Kinds", group: installation}}
}
