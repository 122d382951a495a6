package sandbox

// Collect runs pieces through the collector that keeps head and tail.
func Collect(keep int, pieces ...[]byte) Output {
	c := newCollector(keep)
	for _, p := range pieces {
		c.add(p)
	}
	return c.output()
}

// Admits tells whether an entry of Network.Hosts admits a host and port.
func Admits(entry, host string, port int) (bool, error) {
	r, err := parseHostRule(entry)
	if err != nil {
		return false, err
	}
	name, err := hostName(host)
	if err != nil {
		return false, err
	}
	return r.admits(name, port), nil
}
