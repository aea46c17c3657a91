package dashboard

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/recordings"
	"github.com/selvage/selvage/recordings/levels"
)

// flagTitles are the names of the flags that describe the audio of a recording.
var flagTitles = map[string]string{
	"silent": "Silent", "one-way": "Only one leg talks", "clipped": "Clipped", "dead-air": "Long silence",
}

// recordingFinder returns the search form above the list of recordings.
func (v *visit) recordingFinder() finder {
	var flags, directions []choice
	for _, name := range levels.FlagNames() {
		flags = append(flags, choice{Value: name, Title: flagTitles[name]})
	}

	for _, name := range recordings.Directions {
		directions = append(directions, choice{Value: name, Title: name})
	}
	return v.finder("Name, id, first or last digits", "+1415", "",
		v.dayFilter("after", "Stored on or after"), v.dayFilter("before", "Stored on or before"),
		v.numberFilter("longer", "At least (seconds)"), v.numberFilter("shorter", "Less than (seconds)"),
		v.choiceFilter("flag", "Audio", "Any", flags), v.choiceFilter("direction", "Direction", "Any", directions),
		v.textFilter("tag", "Tag", ""),
		v.choiceFilter("held", "Hold", "Any", []choice{{Value: "yes", Title: "Only on hold"}}),
		v.textFilter("party", "Number or address", "or its end"),
		v.textFilter("name", "Name", "words of it"),
		v.textFilter("call", "Call or recording", "beginning of an id"),
		v.textFilter("conference", "Conference id", ""),
		v.textFilter("subscriber", "Subscriber", "email or id"))
}

// recordingFilter reads the filters from the URL, except for the search box. It returns an error for
// invalid days.
func (a *recordingPages) recordingFilter(v *visit) (recordings.Filter, error) {
	q := v.r.URL.Query()
	text := func(name string) string { return plainText(q.Get(name)) }
	subscriberID, err := a.subscriberID(v, text("subscriber"))
	if err != nil {
		return recordings.Filter{}, err
	}
	from, before, err := parseDays(q.Get("after"), q.Get("before"))
	if err != nil {
		return recordings.Filter{}, err
	}

	filter := recordings.Filter{
		Owner:          recordings.Owner{ProjectID: v.project.ID, SubscriberID: subscriberID},
		CallBegins:     text("call"),
		Party:          text("party"),
		ConferenceSid:  text("conference"),
		Name:           text("name"),
		Tag:            strings.ToLower(text("tag")),
		Held:           q.Get("held") == "yes",
		DurationFrom:   parseSeconds(q.Get("longer")),
		DurationBefore: parseSeconds(q.Get("shorter")),
		CreatedFrom:    from,
		CreatedBefore:  before,
	}
	if flag := q.Get("flag"); flag != "" {
		filter.Flag, _ = levels.FlagOf(flag) // an unknown flag is ignored
	}
	if direction := q.Get("direction"); slices.Contains(recordings.Directions, direction) {
		filter.Direction = direction
	}
	return filter, nil
}

// minEnd is the minimum number of digits after a plus for which findRecordings also looks for
// numbers that end in them. A text with fewer digits is only taken as the beginning of a number.
const minEnd = 7

// findRecordings returns a page of the recordings that match a filter and the text in the search
// box. The text is first taken as a number, an address, or a part of one. If no recording matches, or
// too many numbers begin with the text, it is taken as the beginning of the id of a call or a
// recording, the id of a conference, or words of a name.
func (a *recordingPages) findRecordings(
	ctx context.Context, filter recordings.Filter, text string, query page.Query,
) (page.Page[recordings.Recording], error) {
	if text == "" {
		return a.searchRecordings(ctx, filter, query)
	}

	var tooMany error
	for _, meaning := range meaningsOf(filter, text) {
		found, err := a.searchRecordings(ctx, meaning, query)
		if meaning.PartyBegins != "" && errors.Is(err, problem.Invalid) {
			tooMany = err
			continue
		}
		if err != nil || len(found.Items) > 0 || found.Next != "" || found.Prev != "" {
			return found, err
		}
	}
	return page.Page[recordings.Recording]{}, tooMany
}

// meaningsOf returns the filters that the text in the search box may stand for, in the order in
// which they are tried.
func meaningsOf(filter recordings.Filter, text string) (meanings []recordings.Filter) {
	byParty, byBeginning, byCall := filter, filter, filter
	byParty.Party = text
	byBeginning.PartyBegins = text
	byCall.CallBegins = text
	digits := recordings.Digits(text)
	switch {
	case digits == "":
		meanings = []recordings.Filter{byParty, byCall}
	case strings.HasPrefix(text, "+") && len(digits) < minEnd:
		meanings = []recordings.Filter{byBeginning, byCall}
	default:
		meanings = []recordings.Filter{byParty, byBeginning, byCall}
	}

	byConference := filter
	byConference.ConferenceSid = text
	meanings = append(meanings, byConference)
	if len(recordings.Words(text)) > 0 {
		byName := filter
		byName.Name = strings.TrimSpace(filter.Name + " " + text)
		meanings = append(meanings, byName)
	}
	return meanings
}

// searchRecordings returns a page of the recordings that match a filter. If the filter consists
// only of the beginning of a call's id and no call matches, searchRecordings uses the text as the
// beginning of a recording's id.
func (a *recordingPages) searchRecordings(
	ctx context.Context, filter recordings.Filter, query page.Query,
) (page.Page[recordings.Recording], error) {
	found, err := a.Recordings.List(ctx, filter, query)
	if err != nil || len(found.Items) > 0 {
		return found, err
	}
	callAlone := recordings.Filter{Owner: recordings.Owner{ProjectID: filter.ProjectID}, CallBegins: filter.CallBegins}
	if filter.CallBegins == "" || filter != callAlone {
		return found, nil
	}
	found.Items, err = a.Recordings.FindBeginning(ctx, filter.ProjectID, filter.CallBegins)
	return found, err
}

// parseSeconds returns text as a duration, or 0 if it is not a number of seconds within a year.
func parseSeconds(text string) time.Duration {
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 || n > 366*24*60*60 {
		return 0
	}
	return time.Duration(n) * time.Second
}
