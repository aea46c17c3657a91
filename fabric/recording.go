package fabric

import (
	"context"
	"slices"
	"strings"

	"github.com/selvage/selvage/internal/problem"
)

// RecordCalls is the setting that decides whether calls are recorded. Many countries allow
// recording only with the consent of the people on the call.
type RecordCalls string

// The values of the setting. A project has RecordOff, the default, or RecordOn. A subscriber has one
// of these two values, or RecordInherit, the default.
const (
	RecordInherit RecordCalls = "inherit" // the project's setting applies
	RecordOff     RecordCalls = "off"
	RecordOn      RecordCalls = "on"
)

// checkRecordCalls returns an error unless the setting is nil or one of the allowed values.
func checkRecordCalls(r *RecordCalls, allowed ...RecordCalls) error {
	if r == nil || slices.Contains(allowed, *r) {
		return nil
	}
	names := make([]string, len(allowed))
	for i, a := range allowed {
		names[i] = string(a)
	}
	return problem.BadParam("record_calls", "record_calls must be one of %s", strings.Join(names, ", "))
}

// RecordsCall reports whether a call between these subscribers is recorded. This is the case if the
// setting is on for at least one of them. For unknown subscribers, and for a call without
// subscribers, the project's setting applies.
func (f *Fabric) RecordsCall(ctx context.Context, projectID string, subscriberIDs ...string) (bool, error) {
	projectID, ok := canonical(projectID)
	if !ok {
		return false, problem.NoSuch("project")
	}
	var ids []string
	for _, id := range subscriberIDs {
		if id, ok := canonical(id); ok {
			ids = append(ids, id)
		}
	}

	project, settings, err := f.Projects.store.FindRecordCalls(ctx, projectID, ids)
	if err != nil {
		return false, err
	}

	inherit := len(ids) < len(subscriberIDs) || len(ids) == 0
	for _, id := range ids {
		switch settings[id] {
		case RecordOn:
			return true, nil
		case RecordOff:
		default:
			inherit = true
		}
	}
	return inherit && project == RecordOn, nil
}
