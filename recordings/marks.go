package recordings

import (
	"context"
	"errors"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/selvage/selvage/internal/problem"
)

// Limits of the marks on a recording.
const (
	maxTags   = 20  // per recording
	maxTag    = 64  // characters of a tag
	maxReason = 200 // characters of the reason for a hold
)

// Marks contains what people have decided about a recording.
type Marks struct {
	Tags []string // sorted, without duplicates
	Hold string   // why the recording must not be deleted; "" without a hold
}

// A MarkInput changes the marks of a recording. Fields that are nil or empty change nothing.
type MarkInput struct {
	Hold  *string   // the reason of a new hold; "" ends the hold
	Tags  *[]string // replaces all tags
	Tag   []string  // tags to add
	Untag []string  // tags to remove
}

// Check returns problem.Invalid if the input has an invalid tag or reason.
func (in MarkInput) Check() error {
	var errs []error
	tags := slices.Concat(in.Tag, in.Untag)
	if in.Tags != nil {
		tags = append(tags, *in.Tags...)
	}
	for _, tag := range tags {
		errs = append(errs, CheckTag("tags", tag))
	}
	if in.Hold != nil {
		errs = append(errs, checkReason(*in.Hold))
	}
	return errors.Join(errs...)
}

// CheckTag returns a problem that names param unless tag is valid. A tag has 1 to 64 lowercase
// letters, digits, and characters in "-_.:".
func CheckTag(param, tag string) error {
	forbidden := func(c rune) bool {
		lower := unicode.IsLetter(c) && unicode.ToLower(c) == c
		return !lower && !unicode.IsDigit(c) && !strings.ContainsRune("-_.:", c)
	}
	length := utf8.RuneCountInString(tag)
	validLength := length >= 1 && length <= maxTag
	if !validLength || !utf8.ValidString(tag) || strings.ContainsFunc(tag, forbidden) {
		return problem.BadParam(param,
			"a tag must be 1 to %d lowercase letters, digits, or characters in “-_.:”", maxTag)
	}
	return nil
}

// CheckTags returns problem.Invalid unless a recording can have all of these tags.
func CheckTags(tags []string) error {
	for _, tag := range tags {
		if err := CheckTag("tags", tag); err != nil {
			return err
		}
	}
	return MarkInput{Tags: &tags}.apply(&Marks{})
}

// checkReason returns a problem unless reason is a single line that is not too long.
func checkReason(reason string) error {
	tooLong := utf8.RuneCountInString(reason) > maxReason
	if tooLong || !utf8.ValidString(reason) || strings.ContainsFunc(reason, unicode.IsControl) {
		return problem.BadParam("hold", "the reason of a hold must be at most %d characters in one line", maxReason)
	}
	return nil
}

// apply changes the marks.
func (in MarkInput) apply(m *Marks) error {
	tags := m.Tags
	if in.Tags != nil {
		tags = *in.Tags
	}

	tags = slices.Concat(tags, in.Tag)
	tags = slices.DeleteFunc(tags, func(tag string) bool { return slices.Contains(in.Untag, tag) })
	slices.Sort(tags)
	tags = slices.Compact(tags)
	if len(tags) > maxTags {
		return problem.BadParam("tags", "a recording can have at most %d tags", maxTags)
	}

	m.Tags = tags
	if in.Hold != nil {
		m.Hold = strings.TrimSpace(*in.Hold)
	}
	return nil
}

// Mark changes the tags and the hold of a project's recording. A recording on hold cannot be
// deleted by anyone until the hold ends.
func (r *Recordings) Mark(ctx context.Context, projectID, sid string, in MarkInput) (Recording, error) {
	if err := in.Check(); err != nil {
		return Recording{}, err
	}
	if !isUUID(sid) {
		return Recording{}, problem.NoSuch("recording")
	}
	defer r.recent.Clear()
	return r.c.Store.MarkRecording(ctx, projectID, sid, in.apply, r.c.Now())
}

// ErrHeld returns the error for deleting a recording on hold.
func ErrHeld(hold string) error {
	return problem.New(problem.Conflict, "recording_held",
		"the recording is on hold and cannot be deleted: %s", hold)
}

// ErrHeldIn returns the error for deleting a project in which n recordings are on hold.
func ErrHeldIn(n int64) error {
	return problem.New(problem.Conflict, "recording_held",
		"recordings on hold in the project: %d; it can be deleted when they are released", n)
}
