package chat

// Enqueue handles a notice as if another node had sent it.
func (c *Chat) Enqueue(n Notice) { c.enqueue(n) }
