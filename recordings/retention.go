package recordings

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/uuid7"
)

// maxDays is the longest retention, in days: a hundred years.
const maxDays = 36_525

// maxRules is the maximum number of retention rules of a project.
const maxRules = 100

// retainEvery is how often a process looks for recordings whose time has expired.
const retainEvery = time.Hour

// A Rule determines how long recordings of a project are kept. If several rules apply to a
// recording, only the most specific one takes effect. A rule with a tag takes precedence over a rule without
// a tag. Otherwise, a rule with a subscriber takes precedence over a rule without a subscriber. Of
// equally specific rules, the one with the longest time takes effect. A recording is kept forever if no
// rule applies to it, or if it is on hold.
type Rule struct {
	ID           string
	ProjectID    string
	Tag          string // "" means recordings with any tags or no tags
	SubscriberID string // "" means all recordings
	Days         int    // days since the recording was stored; 0 means forever
	Created      time.Time
}

// check returns an error that lists all faults of a rule.
func (u Rule) check() error {
	var errs []error
	if u.Tag != "" {
		errs = append(errs, CheckTag("tag", u.Tag))
	}
	if u.SubscriberID != "" && !isUUID(u.SubscriberID) {
		errs = append(errs, problem.BadParam("subscriber_id", "subscriber_id must be the id of a subscriber"))
	}
	if u.Days < 0 || u.Days > maxDays {
		errs = append(errs, problem.BadParam("days", "days must be an integer from 0 (forever) to %d", maxDays))
	}
	return errors.Join(errs...)
}

// applies reports whether the rule applies to a recording.
func (u Rule) applies(k Kept) bool {
	return (u.Tag == "" || slices.Contains(k.Tags, u.Tag)) &&
		(u.SubscriberID == "" || slices.Contains(k.SubscriberIDs, u.SubscriberID))
}

// expired reports whether a recording that was stored at the given time is no longer kept.
func (u Rule) expired(stored, now time.Time) bool {
	return u.Days > 0 && !stored.AddDate(0, 0, u.Days).After(now)
}

// compareRules orders rules by precedence. The rule that takes effect comes first.
func compareRules(a, b Rule) int {
	rank := func(u Rule) (n int) {
		if u.Tag != "" {
			n += 2
		}
		if u.SubscriberID != "" {
			n++
		}
		return n
	}

	longest := func(u Rule) int {
		if u.Days == 0 {
			return maxDays + 1
		}
		return u.Days
	}
	return cmp.Or(cmp.Compare(rank(b), rank(a)), cmp.Compare(longest(b), longest(a)))
}

// A Kept is a recording that a retention rule may delete.
type Kept struct {
	ID, Sid       string
	Tags          []string
	SubscriberIDs []string
	Bytes         int64
	Created       time.Time
	Updated       time.Time
}

// An Expiry sums up the recordings whose time has expired.
type Expiry struct {
	Recordings int64
	Bytes      int64
}

// A RetentionStore holds the retention rules.
type RetentionStore interface {
	// AddRule inserts a rule. If the project already has this many rules, the limit, or a rule with
	// the same tag and subscriber, AddRule returns a problem.
	AddRule(ctx context.Context, u Rule, limit int) error
	// ListRules returns the rules of a project, oldest first. projectID "" means all projects.
	ListRules(ctx context.Context, projectID string) ([]Rule, error)
	// DeleteRule deletes a rule of the project, or returns problem.NotFound.
	DeleteRule(ctx context.Context, projectID, id string) error
	// ListKept returns at most n recordings of the project that are neither waiting for their media
	// nor on hold. Their ids are greater than after and less than before.
	ListKept(ctx context.Context, projectID, after, before string, n int) ([]Kept, error)
}

// Retention holds the rules for how long projects keep their recordings, and applies them.
type Retention struct{ *Recordings }

// Retention returns the retention rules.
func (r *Recordings) Retention() Retention { return Retention{r} }

// Add adds a retention rule to a project. It takes up to an hour until the rule is applied.
func (r Retention) Add(ctx context.Context, u Rule) (Rule, error) {
	id, err := uuid.NewV7()
	if err != nil {
		return Rule{}, err
	}
	u.ID = id.String()
	u.Created = r.c.Now().Truncate(time.Microsecond)
	if err := r.Import(ctx, u, false); err != nil {
		return Rule{}, err
	}
	return u, nil
}

// Import adds a retention rule with its id and time of creation. If dry is set, Import only checks
// the fields. It does not check whether the subscriber exists.
func (r Retention) Import(ctx context.Context, u Rule, dry bool) error {
	err := u.check()
	if !isUUID(u.ID) {
		err = errors.Join(err, problem.BadParam("id", "id must be a UUID"))
	}
	if err != nil || dry {
		return err
	}

	if u.SubscriberID != "" {
		known, err := r.c.Store.HasSubscriber(ctx, u.ProjectID, u.SubscriberID)
		if err != nil {
			return err
		}
		if !known {
			return problem.BadParam("subscriber_id", "the project has no subscriber with this id")
		}
	}
	if now := r.c.Now(); u.Created.IsZero() || u.Created.After(now) {
		u.Created = now
	}
	u.Created = u.Created.UTC().Truncate(time.Microsecond)
	return r.c.Store.AddRule(ctx, u, maxRules)
}

// List returns the retention rules of a project, oldest first.
func (r Retention) List(ctx context.Context, projectID string) ([]Rule, error) {
	return r.c.Store.ListRules(ctx, projectID)
}

// Find returns a retention rule of a project.
func (r Retention) Find(ctx context.Context, projectID, id string) (Rule, error) {
	rules, err := r.List(ctx, projectID)
	if err != nil {
		return Rule{}, err
	}
	for _, u := range rules {
		if u.ID == id {
			return u, nil
		}
	}
	return Rule{}, problem.NoSuch("retention rule")
}

// Delete deletes a retention rule of a project.
func (r Retention) Delete(ctx context.Context, projectID, id string) error {
	if !isUUID(id) {
		return problem.NoSuch("retention rule")
	}
	return r.c.Store.DeleteRule(ctx, projectID, id)
}

// Preview sums up the recordings that the rules of a project would delete now. If more is not nil,
// it is treated as an additional rule, or replaces the rule with the same tag and subscriber.
func (r Retention) Preview(ctx context.Context, projectID string, more *Rule) (sum Expiry, err error) {
	rules, err := r.c.Store.ListRules(ctx, projectID)
	if err != nil {
		return sum, err
	}
	if more != nil {
		if err := more.check(); err != nil {
			return sum, err
		}
		rules = append(slices.DeleteFunc(rules, func(u Rule) bool {
			return u.Tag == more.Tag && u.SubscriberID == more.SubscriberID
		}), *more)
	}

	err = r.eachExpired(ctx, projectID, rules, func(k Kept) error {
		sum.Recordings++
		sum.Bytes += k.Bytes
		return nil
	})
	return sum, err
}

// Apply deletes the recordings whose time has expired, in all projects. If a recording changes in the
// meantime, Apply leaves it to the next run. If the media of a recording cannot be removed, Apply
// deletes the other recordings but not their media, which Sweep removes later, and returns the error.
func (r Retention) Apply(ctx context.Context) error {
	rules, err := r.c.Store.ListRules(ctx, "")
	if err != nil {
		return err
	}
	byProject := make(map[string][]Rule)
	for _, u := range rules {
		byProject[u.ProjectID] = append(byProject[u.ProjectID], u)
	}

	defer r.recent.Clear()
	var errs []error
	var mediaErr error
	for projectID, rules := range byProject {
		remove := func(k Kept) error {
			how := Removal{At: r.c.Now(), Why: "retention", Unchanged: k.Updated}
			key, err := r.c.Store.DeleteRecording(ctx, projectID, k.Sid, how)
			if errors.Is(err, problem.NotFound) || errors.Is(err, problem.Conflict) {
				return nil
			}
			if err != nil {
				return err
			}
			if mediaErr == nil { // after a failure, do not wait again: the object store may be down
				mediaErr = r.removeMedia(ctx, key)
			}
			return nil
		}
		errs = append(errs, r.eachExpired(ctx, projectID, rules, remove))
	}
	return errors.Join(append(errs, mediaErr)...)
}

// keptBatch is how many recordings eachExpired requests from ListKept at a time.
const keptBatch = 500

// eachExpired calls do for each recording of a project whose time has expired, oldest first.
func (r Retention) eachExpired(
	ctx context.Context, projectID string, rules []Rule, do func(Kept) error,
) error {
	slices.SortStableFunc(rules, compareRules)
	shortest := 0
	for _, u := range rules {
		if u.Days > 0 && (shortest == 0 || u.Days < shortest) {
			shortest = u.Days
		}
	}
	if shortest == 0 {
		return nil
	}

	now := r.c.Now()
	after, before := "", uuid7.First(now.AddDate(0, 0, -shortest).Add(time.Millisecond))
	for {
		batch, err := r.c.Store.ListKept(ctx, projectID, after, before, keptBatch)
		if err != nil || len(batch) == 0 {
			return err
		}
		for _, k := range batch {
			i := slices.IndexFunc(rules, func(u Rule) bool { return u.applies(k) })
			if i < 0 || !rules[i].expired(k.Created, now) {
				continue
			}
			if err := do(k); err != nil {
				return err
			}
		}
		after = batch[len(batch)-1].ID
	}
}

// applyInTurn calls Apply, unless it has called Apply within the last hour.
func (r Retention) applyInTurn(ctx context.Context) error {
	r.retaining.Lock()
	defer r.retaining.Unlock()
	if now := r.c.Now(); now.Sub(r.retained) >= retainEvery || now.Before(r.retained) {
		r.retained = now
		return r.Apply(ctx)
	}
	return nil
}
