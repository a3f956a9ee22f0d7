package bubblewrap

func launchAndDie(string) int { return 0 }
