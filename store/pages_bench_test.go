package store

import (
	"fmt"
	"testing"

	"github.com/selvage/selvage/internal/page"
)

// BenchmarkPages reads the second page and page 20,000 of lists with a million rows, with 50 rows
// per page. If a list has fewer rows, it reads the last page instead. Unlike the first page, these
// pages require a query for the previous page. On a busy machine, compare cpu-us. Creating the rows
// takes minutes.
func BenchmarkPages(b *testing.B) {
	c := Config{Dir: b.TempDir(), Audit: auditKey(b)}
	s := opened(b, c)
	fill(b, c, s, 1_350_000, 1) // a quarter of them are hidden
	for _, l := range lists() {
		order := "id"
		if l.byName {
			order = "name"
		}

		for _, at := range []struct {
			page string
			rows int // the number of rows before the page
		}{
			{page: "page 2", rows: 50},
			{page: "page 20,000", rows: 999_950},
		} {
			var from string
			sql := `SELECT id FROM addresses WHERE hidden = 0 ORDER BY ` + order + ` LIMIT 1 OFFSET $1`
			if err := s.read().Row(b.Context(), sql, at.rows).Scan(&from); err != nil {
				b.Fatal(err)
			}

			b.Run(fmt.Sprintf("%s/%s", l.name, at.page), func(b *testing.B) {
				began := processor(b)
				for b.Loop() {
					if _, err := l.list(s, page.Query{Size: 50, From: from}); err != nil {
						b.Fatal(err)
					}
				}
				took := processor(b) - began
				b.ReportMetric(float64(took.Microseconds())/float64(b.N), "cpu-us/op")
			})
		}
	}
}
