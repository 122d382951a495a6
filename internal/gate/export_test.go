package gate

// PriorityOf is the priority of a gate, 0 for one that is not in the chain.
func (c *Chain) PriorityOf(name string) int {
	for _, g := range c.gates {
		if g.Name() == name {
			return g.Priority()
		}
	}
	return 0
}
