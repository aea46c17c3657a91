package rest

import (
	"encoding/json"
	"net/http"
	"strconv"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/fabric/kinds"
	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/web"
)

const resources = "/api/fabric/resources/"

// resourceAPI serves subscribers and resources of all kinds in one list.
type resourceAPI struct{ fabric *fabric.Fabric }

func (a resourceAPI) routes(by *credentials) []route {
	const one = resources + "{id}"
	return []route{
		{"GET", "/api/fabric/resources", by.project(respondPage(a.list, a.show))},
		{"DELETE", one, by.project(noContent(a.delete))},
		{"GET", one, by.project(respondOK(a.find, a.show))},
		{"GET", one + "/{what}", by.project(a.listPart)},
		{"POST", one + "/{what}", by.project(respondOK(a.assign, same))},
	}
}

// show returns the document of a subscriber or of a resource of any kind.
func (a resourceAPI) show(t fabric.Thing) any {
	if t.Subscriber != nil {
		return fabric.DocumentOf(*t.Subscriber)
	}
	return fabric.Document(a.fabric.Resources.KindOf(*t.Resource), *t.Resource)
}

// list serves GET /api/fabric/resources.
func (a resourceAPI) list(r *http.Request, by fabric.Issuer, q page.Query) (page.Page[fabric.Thing], error) {
	return a.fabric.Resources.ListThings(r.Context(), by.ProjectID, q)
}

// find serves GET /api/fabric/resources/{id}.
func (a resourceAPI) find(r *http.Request, by fabric.Issuer) (fabric.Thing, error) {
	return a.fabric.Resources.FindThing(r.Context(), by.ProjectID, r.PathValue("id"))
}

// delete serves DELETE /api/fabric/resources/{id}.
func (a resourceAPI) delete(r *http.Request, by fabric.Issuer) error {
	return a.fabric.Resources.DeleteThing(r.Context(), by.ProjectID, r.PathValue("id"))
}

// listPart serves GET /api/fabric/resources/{id}/addresses. The last segment of the pattern is a
// wildcard, because a literal "addresses" would conflict with the routes of kinds, whose last
// segment is an id.
func (a resourceAPI) listPart(w http.ResponseWriter, r *http.Request, by fabric.Issuer) error {
	if r.PathValue("what") != "addresses" {
		return problem.NoSuch("path")
	}
	return respondPage(a.listAddresses, showAddress)(w, r, by)
}

// listAddresses returns the addresses of the resource named in the path.
func (a resourceAPI) listAddresses(
	r *http.Request, by fabric.Issuer, q page.Query,
) (page.Page[fabric.Address], error) {
	return a.fabric.Resources.ListAddresses(r.Context(), by.ProjectID, r.PathValue("id"), q)
}

type assignRequest struct {
	PhoneRouteID  string `json:"phone_route_id"`
	Handler       string `json:"handler"`
	ApplicationID string `json:"domain_application_id"`
	EndpointID    string `json:"sip_endpoint_id"`
}

// assign serves POST /api/fabric/resources/{id}/phone_routes,
// …/domain_applications and …/sip_endpoints.
func (a resourceAPI) assign(r *http.Request, by fabric.Issuer) (any, error) {
	ctx, id := r.Context(), r.PathValue("id")
	if _, err := a.find(r, by); err != nil {
		return nil, err
	}

	what := r.PathValue("what")
	if what != "phone_routes" && what != "domain_applications" && what != "sip_endpoints" {
		return nil, problem.NoSuch("path")
	}

	in, err := web.Decode[assignRequest](r)
	if err != nil {
		return nil, err
	}

	switch what {
	case "phone_routes":
		found, err := a.fabric.Routes.AssignPhone(ctx, by.ProjectID, id, in.PhoneRouteID, in.Handler)
		return showAddress(found), err
	case "domain_applications":
		found, err := a.fabric.Routes.AssignSIPAddress(ctx, by.ProjectID, id, in.ApplicationID)
		return showApplication(found), err
	}

	found, err := a.fabric.Routes.AssignSIPEndpoint(ctx, by.ProjectID, id, in.EndpointID)
	return showAddress(found), err
}

// A kindAPI serves the resources of one kind.
type kindAPI struct {
	resourceAPI
	kind *kinds.Kind
}

func (a kindAPI) routes(by *credentials) []route {
	k, base := a.kind, resources+a.kind.Path
	all := []route{
		{"GET", base, by.project(respondPage(a.list, a.show))},
		{"DELETE", base + "/{id}", by.project(noContent(a.delete))},
		{"GET", base + "/{id}", by.project(respondOK(a.find, a.show))},
		{"PATCH", base + "/{id}", by.project(respondOK(a.update, a.show))},
		{"PUT", base + "/{id}", by.project(respondOK(a.update, a.show))},
		{"GET", base + "/{id}/addresses", by.project(a.listPart)},
	}

	if k.Create == "" {
		all = append(all, route{method: "POST", path: base, handler: by.project(created(a.create, a.show))})
	}
	if k.Versions {
		versions := resources + k.Under() + "/{id}/versions"
		list := respondPage(a.listVersions, showListedVersion)
		deploy := created(a.deploy, showDeployedVersion)
		all = append(all,
			route{method: "GET", path: versions, handler: by.project(list)},
			route{method: "POST", path: versions, handler: by.project(deploy)})
	}
	if k.Under() != k.Path {
		all = append(all, route{
			method:  "GET",
			path:    resources + k.Under() + "/{id}/addresses",
			handler: by.project(a.listPart),
		})
	}

	return all
}

// show returns the document of a resource in the form of its kind, flat or nested.
func (a kindAPI) show(r fabric.Resource) json.RawMessage {
	if a.kind.Flat {
		return fabric.FlatDocument(a.kind, r)
	}
	return fabric.Document(a.kind, r)
}

// maxResource is the maximum size in bytes of a request body with a resource. Handling the body
// takes several times as much memory, because a copy of it is checked against the schema of the kind.
const maxResource = 512 << 10

// create serves POST /api/fabric/resources/{kind}.
func (a kindAPI) create(r *http.Request, by fabric.Issuer) (fabric.Resource, error) {
	sent, err := web.MembersWithin(r, maxResource)
	if err != nil {
		return fabric.Resource{}, err
	}
	return a.fabric.Resources.Create(r.Context(), by.ProjectID, a.kind, sent)
}

// list serves GET /api/fabric/resources/{kind}.
func (a kindAPI) list(r *http.Request, by fabric.Issuer, q page.Query) (page.Page[fabric.Resource], error) {
	return a.fabric.Resources.List(r.Context(), by.ProjectID, a.kind, q)
}

// find serves GET /api/fabric/resources/{kind}/{id}.
func (a kindAPI) find(r *http.Request, by fabric.Issuer) (fabric.Resource, error) {
	return a.fabric.Resources.Find(r.Context(), by.ProjectID, a.kind, r.PathValue("id"))
}

// update serves PUT and PATCH /api/fabric/resources/{kind}/{id}. Members that are not sent remain
// unchanged.
func (a kindAPI) update(r *http.Request, by fabric.Issuer) (fabric.Resource, error) {
	if found, err := a.find(r, by); err != nil {
		return found, err
	}
	sent, err := web.MembersWithin(r, maxResource)
	if err != nil {
		return fabric.Resource{}, err
	}
	return a.fabric.Resources.Update(r.Context(), by.ProjectID, a.kind, r.PathValue("id"), sent)
}

// delete serves DELETE /api/fabric/resources/{kind}/{id}.
func (a kindAPI) delete(r *http.Request, by fabric.Issuer) error {
	return a.fabric.Resources.Delete(r.Context(), by.ProjectID, a.kind, r.PathValue("id"))
}

// listPart serves GET /api/fabric/resources/{kind}/{id}/addresses.
func (a kindAPI) listPart(w http.ResponseWriter, r *http.Request, by fabric.Issuer) error {
	if _, err := a.find(r, by); err != nil {
		return err
	}
	return respondPage(a.listAddresses, showAddress)(w, r, by)
}

// listVersions serves GET /api/fabric/resources/call_flow/{id}/versions.
func (a kindAPI) listVersions(
	r *http.Request, by fabric.Issuer, q page.Query,
) (page.Page[fabric.Version], error) {
	return a.fabric.Resources.ListVersions(r.Context(), by.ProjectID, a.kind, r.PathValue("id"), q)
}

// deploy serves POST /api/fabric/resources/call_flow/{id}/versions.
func (a kindAPI) deploy(r *http.Request, by fabric.Issuer) (v fabric.Version, err error) {
	if _, err := a.find(r, by); err != nil {
		return v, err
	}
	in, err := web.Decode[struct {
		DocumentVersion *int64 `json:"document_version"`
		VersionID       string `json:"call_flow_version_id"`
	}](r)
	if err != nil {
		return v, err
	}
	return a.fabric.Resources.Deploy(r.Context(), by.ProjectID, a.kind, r.PathValue("id"), fabric.DeployInput(in))
}

func showListedVersion(v fabric.Version) json.RawMessage {
	return showVersion(v, kinds.Text("version", strconv.FormatInt(v.Number, 10)))
}

func showDeployedVersion(v fabric.Version) json.RawMessage {
	number := json.RawMessage(strconv.FormatInt(v.DocumentVersion, 10))
	return showVersion(v, kinds.Member{Name: "document_version", Value: number})
}

// showVersion returns the document of a version. It contains the deployed fields and the member
// extra.
func showVersion(v fabric.Version, extra kinds.Member) json.RawMessage {
	all := []kinds.Member{kinds.Text("id", v.ID), extra, kinds.Text("created_at", iso(v.Created)),
		kinds.Text("updated_at", iso(v.Created))}
	for _, name := range []string{"flow_data", "relayml"} {
		if raw, ok := v.Fields[name]; ok {
			all = append(all, kinds.Member{Name: name, Value: raw})
		}
	}
	return kinds.Object(all)
}
