package laml_test

import (
	"bytes"
	"fmt"
	"mime/multipart"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// A list is a page of recordings as clients read it.
type list struct {
	URI          string  `json:"uri"`
	FirstPageURI string  `json:"first_page_uri"`
	NextPageURI  *string `json:"next_page_uri"`
	PrevPageURI  *string `json:"previous_page_uri"`
	Page         int     `json:"page"`
	PageSize     int     `json:"page_size"`
	Recordings   []struct {
		Sid string `json:"sid"`
	} `json:"recordings"`
}

func (l list) sids() []string {
	var sids []string
	for _, r := range l.Recordings {
		sids = append(sids, r.Sid)
	}
	return sids
}

// wantList checks which recordings are listed for a query.
func wantList(t *testing.T, s *server, query url.Values, want []string) {
	t.Helper()
	a := s.do(t, "GET", s.path("/Recordings.json?"+query.Encode()), s.basic)
	wantStatus(t, fmt.Sprintf("the list with %v", query), a, 200)
	if got := read[list](t, a).sids(); !slices.Equal(got, want) {
		t.Errorf("the list with %v = %q, want %q", query, got, want)
	}
}

func TestListDocument(t *testing.T) {
	s := newServer(t)
	paths := []string{
		"/Recordings",
		"/Recordings.json",
		"/Calls/c/Recordings",
		"/Conferences/c/Recordings.json",
	}
	for _, path := range paths {
		root := s.path(strings.TrimSuffix(path, ".json"))
		firstPage := root + "?Page=0&PageSize=50"
		want := map[string]any{
			"uri":               firstPage,
			"first_page_uri":    firstPage,
			"next_page_uri":     nil,
			"previous_page_uri": nil,
			"page":              0.0,
			"page_size":         50.0,
			"recordings":        []any{},
		}
		got := read[map[string]any](t, s.do(t, "GET", s.path(path), s.basic))
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("an empty %s differs (-want +got):\n%s", path, diff)
		}
	}
}

func TestListPages(t *testing.T) {
	s := newServer(t)
	var want []string
	for range 7 {
		want = append(want, s.upload(t, "one_sample.wav", "CallSid="+url.QueryEscape("a b/c")))
		s.upload(t, "one_sample.wav", "")
	}

	slices.Reverse(want)
	var got, pages []string
	first := s.path("/Calls/a%20b%2Fc/Recordings.json?PageSize=3&DateCreated%3E=2026-11-20")
	for next := &first; next != nil; {
		p := read[list](t, s.do(t, "GET", *next, s.basic))
		got = append(got, p.sids()...)
		pages = append(pages, p.URI)
		next = p.NextPageURI
	}

	if !slices.Equal(got, want) {
		t.Errorf("the pages contain %q, want %q", got, want)
	}
	if len(pages) != 3 {
		t.Fatalf("%d pages, want 3", len(pages))
	}

	for i := len(pages) - 1; i >= 0; i-- {
		p := read[list](t, s.do(t, "GET", pages[i], s.basic))
		if p.Page != i {
			t.Errorf("page %d has the number %d, want %d", i, p.Page, i)
		}
		if p.PageSize != 3 {
			t.Errorf("page %d has the page size %d, want 3", i, p.PageSize)
		}
		if p.FirstPageURI != pages[0] {
			t.Errorf("page %d has the first page %s, want %s", i, p.FirstPageURI, pages[0])
		}
		var previous *string
		if i > 0 {
			previous = &pages[i-1]
		}
		if diff := cmp.Diff(previous, p.PrevPageURI); diff != "" {
			t.Errorf("page %d has the wrong previous page (-want +got):\n%s", i, diff)
		}
	}
}

func TestListFilters(t *testing.T) {
	s := newServer(t)
	call := s.upload(t, "one_sample.wav", "CallSid=c1") // 2026-11-21T10:00:01Z
	s.clock.set(s.clock.now().Add(24 * time.Hour))
	conference := s.upload(t, "one_sample.wav", "ConferenceSid=r1") // 2026-11-22T10:00:02Z
	s.clock.set(s.clock.now().Add(24 * time.Hour))
	gone := s.upload(t, "one_sample.wav", "") // 2026-11-23T10:00:03Z
	if a := s.do(t, "DELETE", s.path("/Recordings/"+gone), s.basic); a.StatusCode != 204 {
		t.Fatalf("DELETE = %d, want 204", a.StatusCode)
	}

	type query = url.Values
	tests := []struct {
		query query
		want  []string
	}{
		{query{}, []string{conference, call}},
		{query{"IncludeSoftDeleted": {"true"}}, []string{gone, conference, call}},
		{query{"IncludeSoftDeleted": {"false"}}, []string{conference, call}},
		{query{"CallSid": {"c1"}}, []string{call}},
		{query{"CallSid": {"r1"}}, nil},
		{query{"ConferenceSid": {"r1"}}, []string{conference}},
		{query{"DateCreated": {"2026-11-21"}}, []string{call}},
		{query{"DateCreated": {"2026-11-21T00:00:00Z"}}, []string{call}},
		{query{"DateCreated": {"2026-11-21T10:00:01Z"}}, []string{call}},
		{query{"DateCreated": {"Sat, 21 Nov 2026 12:00:01 +0200"}}, []string{call}},
		{query{"DateCreated": {"Sat, 21 Nov 2026 10:00:01 GMT"}}, []string{call}},
		{query{"DateCreated": {"Sat, 21 Nov 2026 05:00:01 EST"}}, []string{call}},
		{query{"DateCreated": {"Sat, 21 Nov 2026 05:00:01 -0500 (EST)"}}, []string{call}},
		{query{"DateCreated": {"2026-11-21T10:00:02Z"}}, nil},
		{query{"DateCreated<": {"2026-11-22"}}, []string{call}},
		{query{"DateCreated<": {"Sun, 22 Nov 2026 10:00:02 +0000"}}, []string{call}},
		{query{"DateCreated<": {"2026-11-22T10:00:03Z"}}, []string{conference, call}},
		{query{"DateCreated>": {"2026-11-22"}}, []string{conference}},
		{query{"DateCreated>": {"2026-11-22"}, "IncludeSoftDeleted": {"true"}}, []string{gone, conference}},
		{query{"DateCreated>": {"2026-11-21"}, "DateCreated<": {"2026-11-22"}}, []string{call}},
		{query{"DateCreated": {"2026-11-21"}, "DateCreated>": {"2026-11-22"}}, nil},
		{query{"DateCreated": {""}, "PageSize": {"5000"}, "Unknown": {"x"}}, []string{conference, call}},
	}
	for _, tt := range tests {
		wantList(t, s, tt.query, tt.want)
	}

	a := s.do(t, "GET", s.path("/Recordings?IncludeSoftDeleted=true"), s.basic)
	stub := read[struct {
		Recordings []struct{ Media map[string]any }
	}](t, a).Recordings[0]
	if link, ok := stub.Media["media_url"]; !ok || link != nil {
		t.Errorf("the stub's media_url = %v, present %v, want null", link, ok)
	}
}

// TestListByParty shows that a list can be filtered by number, direction and duration. The number
// may have any notation in the recording and the query.
func TestListByParty(t *testing.T) {
	s := newServer(t)
	type query = url.Values
	inbound := s.upload(t, speech, query{
		"From":      {"+1 (415) 555-0134"},
		"To":        {"1000"},
		"Direction": {"inbound"},
	}.Encode())
	outbound := s.upload(t, "one_sample.wav", query{
		"From":      {"/private/alice"},
		"To":        {"0044 20 7946 0958"},
		"Direction": {"outbound"},
	}.Encode())

	tests := []struct {
		query query
		want  []string
	}{
		{query{"Party": {"4155550134"}}, []string{inbound}},
		{query{"Party": {"5550134"}}, []string{inbound}},
		{query{"Party": {"1000"}}, []string{inbound}},
		{query{"Party": {"020 7946 0958"}}, []string{outbound}},
		{query{"Party": {"/private/alice"}}, []string{outbound}},
		{query{"Party": {"5550135"}}, nil},
		{query{"Direction": {"outbound"}}, []string{outbound}},
		{query{"Duration>": {"1"}}, []string{inbound}},
		{query{"Duration<": {"1"}}, []string{outbound}},
		{query{"Duration>": {"1"}, "Party": {"0958"}}, nil},
		{query{"Duration>": {"0.5"}, "Duration<": {"60.25"}, "Party": {"1000"}, "Direction": {"inbound"}},
			[]string{inbound}},
	}
	for _, tt := range tests {
		wantList(t, s, tt.query, tt.want)
	}

	notations := []string{
		"+1 (415) 555-0134", "+14155550134", "14155550134", "0014155550134", "01114155550134",
		"+1.415.555.0134", "tel:+1-415-555-0134", "sip:+14155550134@pbx.example.com",
		"(415) 555-0134", "0415 555 0134",
	}
	for _, number := range notations {
		wantList(t, s, query{"Party": {number}}, []string{inbound})
	}

	bad := []string{
		"Direction=up", "Duration%3E=-1", "Duration%3C=x", "Duration%3E=NaN", "Duration%3E=1e300",
		"Party=1&Party=2",
	}
	for _, params := range bad {
		wantError(t, params, s.do(t, "GET", s.path("/Recordings.json?"+params), s.basic), 400, 10000)
	}
}

// TestListByName shows that recordings are found by the words of their addresses and file names,
// whether the file name came in a header or a form.
func TestListByName(t *testing.T) {
	s := newServer(t)
	send := func(path string, opts ...option) string {
		t.Helper()
		s.clock.set(s.clock.now().Add(time.Second))
		a := s.do(t, "POST", path, append(opts, s.basic)...)
		if a.StatusCode != http.StatusCreated {
			t.Fatalf("upload = %d %s, want 201", a.StatusCode, a.body)
		}
		return read[struct{ Sid string }](t, a).Sid
	}

	raw := corpusFile(t, "one_sample.wav")
	byHeader := send(s.path("/Recordings"), body("audio/wav", raw),
		header("X-Recording-Full-File-Name", "/spool/Quarterly-SalesReview.wav"))

	var form bytes.Buffer
	w := multipart.NewWriter(&form)
	part, err := w.CreateFormFile("file", "Émile sales.wav")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := part.Write(raw); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	byForm := send(s.path("/Recordings?From=/private/lovelace"), body(w.FormDataContentType(), form.Bytes()))

	tests := map[string][]string{
		"SALES":                     {byForm, byHeader},
		"sal":                       {byForm, byHeader},
		"sales émi":                 {byForm},
		"wav quarter":               {byHeader},
		"Quarterly-SalesReview.wav": {byHeader},
		"review":                    {byHeader},
		"ales":                      nil,
		"LOVELACE":                  {byForm},
		"spool":                     nil,
		"sales_":                    {byForm, byHeader},
	}
	for name, want := range tests {
		wantList(t, s, url.Values{"Name": {name}}, want)
	}
}

func TestListRefusesBadQueries(t *testing.T) {
	s := newServer(t)
	for _, query := range []string{
		"PageSize=0", "PageSize=-1", "PageSize=x", "PageSize=99999999999999999999", "Page=-1", "Page=x",
		"Page=1", "Page=1&PageToken=x", "PageToken=PA", "PageToken=PA00000000-0000-0000-0000-00000000000g",
		"DateCreated=yesterday", "DateCreated%3C=2026-13-01", "DateCreated%3E=1", "IncludeSoftDeleted=yes",
		"CallSid=a&CallSid=b", "Page=%zz", "Name=%25", "Name=1+2+3+4+5+6+7+8+9",
	} {
		wantError(t, query, s.do(t, "GET", s.path("/Recordings?"+query), s.basic), 400, 10000)
	}
}
