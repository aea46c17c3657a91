package once

import "time"

// RenewEvery sets how often g renews an upload.
func (g *Guard) RenewEvery(d time.Duration) { g.every = d }
