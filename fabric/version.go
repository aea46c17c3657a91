package fabric

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/selvage/selvage/fabric/kinds"
	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/internal/problem"
)

// A Version is a copy of a resource that was made when the resource was deployed.
type Version struct {
	ID              string
	ProjectID       string
	ResourceID      string
	Number          int64 // position among the resource's versions, from 1
	DocumentVersion int64
	Fields          kinds.Values
	Created         time.Time
}

// A DeployInput selects what to deploy: the current document by its version, or an earlier
// deployment by its id.
type DeployInput struct {
	DocumentVersion *int64
	VersionID       string
}

// Deploy creates a version of a resource whose kind has versions.
func (rs *Resources) Deploy(
	ctx context.Context, projectID string, k *kinds.Kind, id string, in DeployInput,
) (Version, error) {
	r, err := rs.Find(ctx, projectID, k, id)
	if err != nil {
		return Version{}, err
	}

	v := Version{ID: newID(), ProjectID: projectID, ResourceID: r.ID, Created: rs.now()}
	switch {
	case in.VersionID != "":
		err = rs.deployAgain(ctx, in.VersionID, &v)
	case in.DocumentVersion != nil:
		err = deployCurrent(r, *in.DocumentVersion, &v)
	default:
		err = problem.Missing(versionField)
	}
	if err != nil {
		return Version{}, err
	}
	return rs.store.CreateVersion(ctx, v)
}

// deployCurrent copies the current document of r to v. meant is the version that the caller
// expects. If the document has another version, deployCurrent returns an error.
func deployCurrent(r Resource, meant int64, v *Version) error {
	var current int64
	if err := json.Unmarshal(r.Fields[versionField], &current); err != nil {
		return fmt.Errorf("reading version: %w", err)
	}
	if meant != current {
		return &problem.Error{
			Kind:    problem.Invalid,
			Code:    "document_version_mismatch",
			Param:   versionField,
			Message: fmt.Sprintf("%s must be %d, the current one", versionField, current),
		}
	}
	v.DocumentVersion = current
	v.Fields = r.Fields
	return nil
}

// deployAgain copies the document of an earlier version to v.
func (rs *Resources) deployAgain(ctx context.Context, id string, v *Version) error {
	const param = "call_flow_version_id"
	id, ok := canonical(id)
	if !ok {
		return problem.BadParam(param, "%s must be a UUID", param)
	}

	old, err := rs.store.FindVersion(ctx, v.ResourceID, id)
	if errors.Is(err, problem.NotFound) {
		return &problem.Error{
			Kind:    problem.Invalid,
			Code:    "does_not_exist",
			Param:   param,
			Message: param + " is not a version of this resource",
		}
	}
	if err != nil {
		return err
	}
	v.DocumentVersion = old.DocumentVersion
	v.Fields = old.Fields
	return nil
}

// ListVersions returns a page of the deployed versions of a resource.
func (rs *Resources) ListVersions(
	ctx context.Context, projectID string, k *kinds.Kind, id string, q page.Query,
) (page.Page[Version], error) {
	r, err := rs.Find(ctx, projectID, k, id)
	if err != nil {
		return page.Page[Version]{}, err
	}
	return rs.store.ListVersions(ctx, r.ID, q)
}
