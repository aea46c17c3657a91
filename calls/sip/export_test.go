package sip

import "time"

// CheckDialogs asks phones in calls whether they are still there, as if it were now.
func (s *Server) CheckDialogs(now time.Time) { s.checkDialogs(now) }
