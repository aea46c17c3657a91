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
// deployment by its id. If both are set, VersionID is used.
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

	var source document
	switch {
	case in.VersionID != "":
		source, err = rs.earlierDocument(ctx, r, in.VersionID)
	case in.DocumentVersion != nil:
		source, err = currentDocument(r, *in.DocumentVersion)
	default:
		err = problem.Missing(versionField)
	}
	if err != nil {
		return Version{}, err
	}
	return rs.store.CreateVersion(ctx, Version{
		ID:              newID(),
		ProjectID:       projectID,
		ResourceID:      r.ID,
		DocumentVersion: source.version,
		Fields:          source.fields,
		Created:         rs.now(),
	})
}

// A document is the content of a resource in one of its versions.
type document struct {
	version int64
	fields  kinds.Values
}

// currentDocument returns the current document of r. If its version is not the one that the caller
// expects, currentDocument returns an error.
func currentDocument(r Resource, expected int64) (document, error) {
	var current int64
	if err := json.Unmarshal(r.Fields[versionField], &current); err != nil {
		return document{}, fmt.Errorf("reading version: %w", err)
	}
	if expected != current {
		return document{}, &problem.Error{
			Kind:    problem.Invalid,
			Code:    "document_version_mismatch",
			Param:   versionField,
			Message: fmt.Sprintf("%s must be %d, the current one", versionField, current),
		}
	}
	return document{current, r.Fields}, nil
}

// earlierDocument returns the document of an earlier version of r. Only call flows have versions, so
// errors name the parameter of call flows.
func (rs *Resources) earlierDocument(ctx context.Context, r Resource, id string) (document, error) {
	const param = "call_flow_version_id"
	id, ok := canonical(id)
	if !ok {
		return document{}, problem.BadParam(param, "%s must be a UUID", param)
	}

	v, err := rs.store.FindVersion(ctx, r.ID, id)
	if errors.Is(err, problem.NotFound) {
		return document{}, &problem.Error{
			Kind:    problem.Invalid,
			Code:    "does_not_exist",
			Param:   param,
			Message: param + " is not a version of this resource",
		}
	}
	if err != nil {
		return document{}, err
	}
	return document{v.DocumentVersion, v.Fields}, nil
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
