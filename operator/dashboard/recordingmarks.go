package dashboard

import (
	"net/http"
	"strings"

	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/words"
	"github.com/selvage/selvage/recordings"
)

// markRecording serves POST /dashboard/projects/{project}/recordings/{sid}/mark.
func (a *recordingPages) markRecording(v *visit) error {
	if a.Recordings == nil {
		return problem.NoSuch("recording")
	}
	sid := v.r.PathValue("sid")
	r, err := a.Recordings.Find(v.r.Context(), recordings.Owner{ProjectID: v.project.ID}, sid)
	if err != nil {
		return err
	}
	err = v.merge(markInputs(r))
	if wrong, ok := describeFaults(err, "tags", "hold"); ok {
		return a.recordingPage(v, http.StatusUnprocessableEntity, wrong)
	}
	if err != nil {
		return err
	}

	tags, hold := tagsIn(v.form.Get("tags")), v.form.Get("hold")
	if wrong := wrongTags(v, tags); wrong != nil {
		return a.recordingPage(v, http.StatusUnprocessableEntity, wrong)
	}
	_, err = a.Recordings.Mark(v.r.Context(), v.project.ID, sid, recordings.MarkInput{Tags: &tags, Hold: &hold})
	if wrong, ok := describeFaults(err, "tags", "hold"); ok {
		return a.recordingPage(v, http.StatusUnprocessableEntity, wrong)
	}
	if err != nil {
		return err
	}
	return v.redirect(v.base() + "/recordings/" + sid + "?done=changed")
}

// markInputs returns the inputs for the tags and the hold of a recording, with their current values.
func markInputs(r recordings.Recording) []input {
	return []input{{Name: "tags", Value: strings.Join(r.Tags, " ")}, {Name: "hold", Value: r.Hold}}
}

// tagsIn returns the tags in a text, which are separated by spaces or commas. It converts them to
// lower case.
func tagsIn(text string) []string {
	return strings.Fields(strings.ToLower(strings.ReplaceAll(text, ",", " ")))
}

// wrongTags returns errors that name the invalid tags of a form, at most five of them.
func wrongTags(v *visit, tags []string) (wrong faults) {
	for _, tag := range tags {
		if recordings.CheckTag("tags", tag) == nil {
			continue
		}
		text := words.Textf("%s is not a valid tag. "+
			"Use at most 64 lowercase letters, digits, and characters in “-_.:”.", v.quote(tag))
		wrong = append(wrong, fault{Text: text, ID: "tags"})
		if len(wrong) == 5 {
			break
		}
	}
	return wrong
}
