package rest

import (
	"encoding/json"
	"net/http"
	"strconv"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/fabric/kinds"
	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/internal/web"
)

// versionRoutes lists the version routes of a kind that has versions.
func (c kindAPI) versionRoutes() []route {
	path := resources + c.kind.Under() + "/{id}/versions"
	return []route{
		{"GET", path, c.project(c.listVersions)},
		{"POST", path, c.project(c.deploy)},
	}
}

// listVersions serves GET /api/fabric/resources/call_flow/{id}/versions.
func (c kindAPI) listVersions(w http.ResponseWriter, r *http.Request, by fabric.Issuer) error {
	return paged(w, r, func(q page.Query) (page.Page[fabric.Version], error) {
		return c.fabric.Resources.ListVersions(r.Context(), by.ProjectID, c.kind, r.PathValue("id"), q)
	}, func(v fabric.Version) json.RawMessage {
		return showVersion(v, text("version", strconv.FormatInt(v.Number, 10)))
	})
}

// deploy serves POST /api/fabric/resources/call_flow/{id}/versions.
func (c kindAPI) deploy(w http.ResponseWriter, r *http.Request, by fabric.Issuer) error {
	if _, err := c.fabric.Resources.Find(r.Context(), by.ProjectID, c.kind, r.PathValue("id")); err != nil {
		return err
	}

	in, err := web.Decode[struct {
		DocumentVersion *int64 `json:"document_version"`
		VersionID       string `json:"call_flow_version_id"`
	}](r)
	if err != nil {
		return err
	}

	v, err := c.fabric.Resources.Deploy(r.Context(), by.ProjectID, c.kind, r.PathValue("id"), fabric.DeployInput(in))
	if err != nil {
		return err
	}

	return web.JSON(w, http.StatusCreated, showVersion(v, kinds.Member{
		Name: "document_version", Value: json.RawMessage(strconv.FormatInt(v.DocumentVersion, 10)),
	}))
}

// showVersion returns the document of a version: its deployed fields and the member more.
func showVersion(v fabric.Version, more kinds.Member) json.RawMessage {
	all := []kinds.Member{text("id", v.ID), more, text("created_at", iso(v.Created)),
		text("updated_at", iso(v.Created))}
	for _, name := range []string{"flow_data", "relayml"} {
		if raw, ok := v.Fields[name]; ok {
			all = append(all, kinds.Member{Name: name, Value: raw})
		}
	}
	return kinds.Object(all)
}

// text returns a member with a string value.
func text(name, value string) kinds.Member {
	raw, _ := json.Marshal(value) // a string always encodes
	return kinds.Member{Name: name, Value: raw}
}
