package dashboard

import (
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/selvage/selvage/calls"
	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/fabric/kinds"
	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/words"
	"github.com/selvage/selvage/operator"
	"github.com/selvage/selvage/templates"
)

// A resourceKindsPage offers the kinds of a new resource.
type resourceKindsPage struct {
	Base  string
	Kinds []choice
}

// chooseKind serves GET /dashboard/projects/{project}/resources/new.
func (a *resourcePages) chooseKind(v *visit) error {
	p := resourceKindsPage{Base: v.base()}
	for _, k := range byUse(a.Fabric.Resources.Kinds().All()) {
		p.Kinds = append(p.Kinds, choice{Value: k.Path, Title: k.Title, Why: k.Description})
	}
	return a.page(v, http.StatusOK, "New resource", "resource_new", p)
}

// firstKinds lists the kinds that most people need, in the order in which the page shows them.
var firstKinds = []string{"conference_rooms", "swml_scripts", "ring_groups", "sip_endpoints", "sip_gateways",
	"swml_webhooks"}

// byUse returns the kinds in catalog, beginning with firstKinds.
func byUse(catalog []*kinds.Kind) []*kinds.Kind {
	rank := func(k *kinds.Kind) int {
		if i := slices.Index(firstKinds, k.Path); i >= 0 {
			return i
		}
		return len(firstKinds)
	}
	sorted := slices.Clone(catalog)
	slices.SortStableFunc(sorted, func(a, b *kinds.Kind) int { return rank(a) - rank(b) })
	return sorted
}

// A resourceForm is the form that creates or changes a resource.
type resourceForm struct {
	Base, Action, Back, BackTo string
	Title, About, Button       string
	Link                       string // path of the action that also creates a guest link for the new room, or ""
	Form                       form
}

// kind returns the kind named in the path.
func (a *resourcePages) kind(v *visit) (*kinds.Kind, error) {
	if k := a.Fabric.Resources.Kinds().ByPath(v.r.PathValue("kind")); k != nil {
		return k, nil
	}
	return nil, problem.NoSuch("kind")
}

// newResource serves GET /dashboard/projects/{project}/kinds/{kind}.
func (a *resourcePages) newResource(v *visit) error {
	k, err := a.kind(v)
	if err != nil {
		return err
	}
	return a.resourceForm(v, http.StatusOK, a.resourceNew(v, k, nil))
}

// resourceNew returns the form for a new resource, with the given values.
func (a *resourcePages) resourceNew(v *visit, k *kinds.Kind, values kinds.Values) resourceForm {
	fields := kindForm(k, values, true)
	fields.Inputs[0].Focus = true
	if address := fields.find(k.AddressName); address != nil {
		address.Required = false // it is taken from the title
	}
	v.addAddressHint(k, &fields)
	p := resourceForm{
		Base:   v.base(),
		Action: v.base() + "/kinds/" + k.Path,
		Back:   v.base() + "/resources/new",
		Title:  words.Textf("New %s", v.inSentence(k.Title)),
		About:  k.Description,
		Button: words.Textf("Add %s", v.inSentence(k.Title)),
		Form:   fields,
	}
	if k.Type == roomKind && !a.NoCalls {
		p.Link = p.Action + "/link"
	}
	return p
}

func (a *resourcePages) resourceForm(v *visit, code int, p resourceForm) error {
	if err := a.offerResources(v, &p.Form); err != nil {
		return err
	}
	return a.pageWith(v, templates.Options{Status: code, Connect: []string{"'self'"}}, p.Title, "resource_form", p)
}

// exampleOf returns the members of the first example of a kind.
func exampleOf(k *kinds.Kind) (members kinds.Values) {
	if len(k.Examples) > 0 {
		_ = json.Unmarshal(k.Examples[0], &members) // an invalid example is ignored
	}
	return members
}

// createResource serves POST /dashboard/projects/{project}/kinds/{kind}.
func (a *resourcePages) createResource(v *visit) error {
	k, err := a.kind(v)
	if err != nil {
		return err
	}
	r, sent, err := a.addResource(v, k)
	if err != nil {
		return a.resourceFault(v, k, sent, err)
	}
	if k.Type == fabric.EndpointKind {
		return a.newPassword(v, r.ID)
	}
	return v.redirect(v.base() + "/resources/" + r.ID + "?done=resourceadded")
}

// addResource creates the resource that the form describes. If the form leaves the name for the
// address empty, addResource uses the name that people see.
func (a *resourcePages) addResource(v *visit, k *kinds.Kind) (r fabric.Resource, sent kinds.Values, err error) {
	posted := maps.Clone(v.form)
	for _, name := range k.Name {
		if k.AddressName != "" && strings.TrimSpace(posted.Get(k.AddressName)) == "" {
			posted.Set(k.AddressName, posted.Get(name))
		}
	}
	sent, wrong := valuesFrom(k.Fields, "", posted, nil, true)
	if err := errors.Join(wrong...); err != nil {
		return fabric.Resource{}, sent, err
	}
	r, err = a.Fabric.Resources.Create(v.r.Context(), v.project.ID, k, sent)
	return r, sent, err
}

// resourceFault shows the form for a new resource again, with the errors next to their inputs.
func (a *resourcePages) resourceFault(v *visit, k *kinds.Kind, sent kinds.Values, err error) error {
	p := a.resourceNew(v, k, sent)
	p.Form.retype(v.form)
	if !p.Form.blame(err) {
		return err
	}
	return a.resourceForm(v, http.StatusUnprocessableEntity, p)
}

// resource returns the resource named in the path, and its kind.
func (a *resourcePages) resource(v *visit) (fabric.Resource, *kinds.Kind, error) {
	r, err := a.findResource(v, v.r.PathValue("id"))
	if err != nil {
		return fabric.Resource{}, nil, err
	}
	return r, a.Fabric.Resources.KindOf(r), nil
}

// A resourcePage shows one resource.
type resourcePage struct {
	Resource  resourceRow
	Updated   time.Time
	About     string
	Facts     []fact
	Addresses []addressRow
	Answers   bool     // whether the resource answers calls to its addresses
	Guests    bool     // whether guests can join in a browser
	Lifetimes []choice // possible lifetimes of a link for guests
	Snippets  []snippet
	Deployed  *versionList
	Base      string
	MayChange bool
	Faults    faults
	Endpoint  *endpointPart // the part of the page about a SIP endpoint; nil for other kinds
}

// showResource serves GET /dashboard/projects/{project}/resources/{id}.
func (a *resourcePages) showResource(v *visit) error { return a.resourcePage(v, http.StatusOK, nil) }

func (a *resourcePages) resourcePage(v *visit, code int, wrong faults) error {
	r, k, err := a.resource(v)
	if err != nil {
		return err
	}
	return a.pageOf(v, code, r, k, wrong, endpointPartOf(r, ""))
}

// pageOf shows the page of a resource.
func (a *resourcePages) pageOf(
	v *visit, code int, r fabric.Resource, k *kinds.Kind, wrong faults, endpoint *endpointPart,
) error {
	found, err := a.Fabric.Resources.ListAddresses(v.r.Context(), v.project.ID, r.ID,
		page.Query{Size: page.DefaultSize})
	if err != nil {
		return err
	}

	p := resourcePage{
		Resource:  a.resourceRow(v, r),
		Updated:   r.Updated,
		About:     k.Description,
		Facts:     factsOf(k, r.Fields),
		Guests:    !a.NoCalls,
		Lifetimes: tokenLifetimes,
		Snippets:  a.resourceSnippets(v, k, r, found.Items),
		Base:      v.base(),
		MayChange: v.mayIn(operator.Write),
		Faults:    wrong,
		Endpoint:  endpoint,
	}
	for _, address := range found.Items {
		p.Addresses = append(p.Addresses, v.addressRow(address))
		p.Answers = p.Answers || calls.CanReach(address) || endpoint != nil
	}

	p.Deployed, err = a.versions(v, k, r)
	if err != nil {
		return err
	}
	if v.done("resourceadded") {
		v.notice = words.Sentences(words.Textf("%s created.", v.quote(p.Resource.Title)), addressText(p.Addresses))
	}
	return a.page(v, code, p.Resource.Title, "resource", p)
}

// addressText returns a sentence about the address of a new resource. The address is derived from
// the name, and may differ from what the operator expects.
func addressText(addresses []addressRow) string {
	if len(addresses) == 0 {
		return "It has no address."
	}
	return words.Textf("Its address is %s, even after it is renamed.", addresses[0].Path())
}

// editResource serves GET /dashboard/projects/{project}/resources/{id}/edit.
func (a *resourcePages) editResource(v *visit) error {
	r, k, err := a.resource(v)
	if err != nil {
		return err
	}
	p := v.resourceEdit(k, r)
	found, err := a.Fabric.Resources.ListAddresses(v.r.Context(), v.project.ID, r.ID, page.Query{Size: 1})
	if err != nil {
		return err
	}
	if in := addressInput(k, &p.Form); in != nil && len(found.Items) > 0 {
		in.Live = &liveHint{Text: words.Textf("Its address, %s, does not change.", found.Items[0].Path())}
	}
	return a.resourceForm(v, http.StatusOK, p)
}

// resourceEdit returns the form that changes a resource.
func (v *visit) resourceEdit(k *kinds.Kind, r fabric.Resource) resourceForm {
	one := v.base() + "/resources/" + r.ID
	fields := kindForm(k, r.Fields, false)
	fields.mark()
	return resourceForm{
		Base:   v.base(),
		Action: one + "/edit",
		Back:   one,
		BackTo: r.DisplayName,
		Title:  words.Textf("Edit %s", r.DisplayName),
		Button: "Save changes",
		Form:   fields,
	}
}

// changeResource serves POST /dashboard/projects/{project}/resources/{id}/edit. It writes only the
// fields that the operator changed, so that it does not overwrite changes by others.
func (a *resourcePages) changeResource(v *visit) error {
	r, k, err := a.resource(v)
	if err != nil {
		return err
	}

	p := v.resourceEdit(k, r)
	err = v.merge(p.Form.Inputs, p.Form.More)
	if err == nil {
		err = a.updateResource(v, r, k)
	}
	if err == nil {
		return v.redirect(v.base() + "/resources/" + r.ID + "?done=changed")
	}

	p.Form.retype(v.form)
	if !p.Form.blame(err) {
		return err
	}
	return a.resourceForm(v, http.StatusUnprocessableEntity, p)
}

// updateResource writes the members that the form changes.
func (a *resourcePages) updateResource(v *visit, r fabric.Resource, k *kinds.Kind) error {
	sent, wrong := valuesFrom(k.Fields, "", v.form, r.Fields, false)
	if err := errors.Join(wrong...); err != nil {
		return err
	}
	changes := changedMembers(sent, r.Fields)
	if len(changes) == 0 {
		return nil
	}
	if k.Versions {
		changes[versionField] = nextVersion(r.Fields)
	}
	_, err := a.Fabric.Resources.Update(v.r.Context(), v.project.ID, k, r.ID, changes)
	return err
}

// nextVersion returns the number of the next document of a resource with versions.
func nextVersion(values kinds.Values) json.RawMessage {
	n, _ := strconv.ParseInt(string(values[versionField]), 10, 64) // always a number: the server has set it
	return marshal(n + 1)
}

// deleteResource serves POST /dashboard/projects/{project}/resources/{id}/delete.
func (a *resourcePages) deleteResource(v *visit) error {
	r, k, err := a.resource(v)
	if err != nil {
		return err
	}
	if v.form.Get("confirm") != a.resourceRow(v, r).Title {
		return a.resourcePage(v, http.StatusUnprocessableEntity, faultAt("confirm", wrongName))
	}

	err = a.Fabric.Resources.Delete(v.r.Context(), v.project.ID, k, r.ID)
	if wrong, ok := describeFaults(err); ok {
		return a.resourcePage(v, http.StatusUnprocessableEntity, wrong)
	}
	if err != nil {
		return err
	}
	a.rememberDeleted(v, a.resourceRow(v, r).Title)
	return v.redirect(v.base() + "/resources?done=resourcedeleted")
}
