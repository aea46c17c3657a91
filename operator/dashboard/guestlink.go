package dashboard

import (
	"net/http"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/words"
)

// roomKind is the kind of resource whose form can also make a link for guests.
const roomKind = "video_room"

// createWithLink serves POST /dashboard/projects/{project}/kinds/{kind}/link. It creates a room, and a
// link with which guests can join the room. If the link cannot be created, the room remains, and the
// page of the room says why there is no link.
func (a *resourcePages) createWithLink(v *visit) error {
	k, err := a.kind(v)
	if err != nil {
		return err
	}
	if k.Type != roomKind || a.NoCalls {
		return problem.NoSuch("page")
	}
	r, sent, err := a.addResource(v, k)
	if err != nil {
		return a.resourceFault(v, k, sent, err)
	}

	v.notice = words.Textf("%s created.", v.quote(r.DisplayName))
	link, err := a.linkTo(v, r)
	if err != nil {
		return a.pageOf(v, http.StatusOK, r, k, a.halfDone(v, "No guest link was made.", err), nil)
	}
	return a.tokens.tokenForm(v, http.StatusOK, link)
}

// linkTo creates a guest link to a resource, with the default lifetime. It returns the page that shows
// the link.
func (a *resourcePages) linkTo(v *visit, r fabric.Resource) (mintPage, error) {
	found, err := a.Fabric.Resources.ListAddresses(v.r.Context(), v.project.ID, r.ID, page.Query{Size: 1})
	if err != nil {
		return mintPage{}, err
	}
	if len(found.Items) == 0 {
		return mintPage{}, problem.New(problem.Conflict, "no_address", "the room has no address")
	}

	made, err := a.tokens.mintGuest(v, mintedToken{Expires: v.now.Add(fabric.TokenLifetime)}, nil,
		[]string{found.Items[0].ID})
	p := mintPage{Base: v.base(), Action: v.base() + "/tokens/make/guest?link", Made: &made}
	p.nameRoom()
	return p, err
}

// nameRoom puts the name of the room to which a new link leads into the page's title.
func (p *mintPage) nameRoom() {
	if p.Made.Link != "" && p.Made.Room.Name != "" {
		p.Title, p.About = words.Textf("Guest link to %s", p.Made.Room.Name), ""
	}
}

// roomOf returns the resource or subscriber at a guest token's only address. It returns a zero
// Resource if the token does not have exactly one address.
func (a *tokenPages) roomOf(v *visit, addresses []string) (fabric.Resource, error) {
	if len(addresses) != 1 {
		return fabric.Resource{}, nil
	}
	reaches := fabric.Token{Kind: fabric.SAT, ProjectID: v.project.ID} // can reach every address
	to, err := a.Fabric.Addresses.Find(v.r.Context(), reaches, addresses[0])
	if err != nil {
		return fabric.Resource{}, problem.IgnoreNotFound(err)
	}
	found, err := a.Fabric.Resources.FindThing(v.r.Context(), v.project.ID, to.ResourceID)
	if err != nil {
		return fabric.Resource{}, problem.IgnoreNotFound(err)
	}
	if found.Subscriber != nil {
		return asResource(*found.Subscriber), nil
	}
	return *found.Resource, nil
}
