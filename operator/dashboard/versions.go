package dashboard

import (
	"context"
	"net/http"
	"slices"
	"strconv"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/fabric/kinds"
	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/internal/problem"
)

// A versionList contains the versions of a resource, for the resource's page.
type versionList struct {
	Document int64 // number of the current document
	Fresh    bool  // whether the current document has been deployed as a version
	Versions []fabric.Version
	Earlier  bool // whether there are more versions than the page shows
}

// maxVersions is the maximum number of versions that a page shows.
const maxVersions = 20

// versions returns the versions of a resource, newest first, or nil if its kind has no versions.
func (a *resourcePages) versions(v *visit, k *kinds.Kind, r fabric.Resource) (*versionList, error) {
	if !k.Versions {
		return nil, nil
	}
	list := func(ctx context.Context, query page.Query) (page.Page[fabric.Version], error) {
		return a.Fabric.Resources.ListVersions(ctx, v.project.ID, k, r.ID, query)
	}
	versions, err := page.Every(v.r.Context(), list)
	if err != nil {
		return nil, err
	}

	slices.Reverse(versions)                                                // newest first
	document, _ := strconv.ParseInt(string(r.Fields[versionField]), 10, 64) // always a number: the server has set it
	isCurrent := func(one fabric.Version) bool { return one.DocumentVersion == document }
	return &versionList{
		Document: document,
		Fresh:    slices.ContainsFunc(versions, isCurrent),
		Versions: versions[:min(len(versions), maxVersions)],
		Earlier:  len(versions) > maxVersions,
	}, nil
}

// deploy serves POST /dashboard/projects/{project}/resources/{id}/deploy. It deploys either the
// document that the page showed, or an earlier version.
func (a *resourcePages) deploy(v *visit) error {
	r, k, err := a.resource(v)
	if err != nil {
		return err
	}
	if !k.Versions {
		return problem.NoSuch("page")
	}

	in := fabric.DeployInput{VersionID: v.form.Get("version")}
	if in.VersionID == "" {
		document, err := strconv.ParseInt(v.form.Get("document"), 10, 64)
		if err != nil {
			return problem.BadParam("document", "unknown version")
		}
		in.DocumentVersion = &document
	}

	_, err = a.Fabric.Resources.Deploy(v.r.Context(), v.project.ID, k, r.ID, in)
	if wrong, ok := describeFaults(err); ok {
		return a.resourcePage(v, http.StatusUnprocessableEntity, wrong)
	}
	if err != nil {
		return err
	}
	return v.redirect(v.base() + "/resources/" + r.ID + "?done=deployed")
}
